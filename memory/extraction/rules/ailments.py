"""Words for conditions that people have, for what brings them on, and for what they take against them."""

_CONDITIONS = (
    "asthma|dyslexia|dyscalculia|dyspraxia|(?i:adhd|ocd|ptsd|ibs|pcos)|ADD|MS|autism|epilepsy|diabetes|hay ?fever"
    "|eczema|psoriasis|rosacea|arthritis|osteoarthritis|osteoporosis|sciatica|scoliosis|tinnitus|crohn's(?: disease)?"
    "|colitis|c(?:o)?eliac(?: disease)?|reflux|heartburn|migraines?|insomnia|sleep apno?ea|narcolepsy|vertigo|anaemia"
    "|anemia|lupus|fibromyalgia|gout|glaucoma|cataracts?|endometriosis|multiple sclerosis|parkinson's(?: disease)?"
    "|alzheimer's(?: disease)?|dementia|cancer|leuka?emia|hepatitis|long covid|hypertension|hypotension"
    "|(?:high|low) blood pressure|high cholesterol|hypothyroidism|hyperthyroidism|hashimoto's|tendonitis|tendinitis"
    "|plantar fasciitis|carpal tunnel(?: syndrome)?|bipolar(?: disorder)?|anxiety|depression|dyspraxia|stammer|stutter"
    "|hearing loss|tunnel vision|astigmatism|lactose intolerance|(?:[a-z]+ )?(?:allergy|allergies|intolerance)"
    "|heart (?:condition|murmur|disease|failure)|kidney (?:disease|stones)|bad (?:back|knees?|hips?|shoulder)|pacemaker"
    "|hearing aids?|hip replacement|knee replacement|slipped disc|herniated disc"
)
CONDITION = (
    r"(?:(?:an?|the|my|his|her) )?(?:(?:severe|mild|chronic|bad|terrible|awful|seasonal|type (?:1|2|one|two)|moderate"
    r"|slight|really bad|early|gestational|frequent|regular|clinical|social|postnatal|rheumatoid|adult) )*"
    rf"(?:{_CONDITIONS})"
)
"""Pattern of a condition, with its article and words for its degree."""

_BODY = (
    r"(?:(?:left|right|lower|upper|whole|big|other) )*(?:hands?|fingers?|thumbs?|wrists?|elbows?|arms?|shoulders?|neck"
    r"|back|spine|hips?|knees?|ankles?|foot|feet|heels?|toes?|legs?|joints?|jaws?|eyes?|ears?|face|head|scalp|skin"
    r"|lungs?|chest|breasts?|stomach|bowels?|liver|kidneys?|bladder|throat|blood|bones?|heart|brain)"
)
CONDITION_WHERE = (
    rf"(?: in (?:(?:my|his|her|their|the|both|one|either|each) )*{_BODY}"
    r"| in (?:the )?(?:springtime|spring|summer|autumn|fall|winter|mornings?|evenings?|cold|heat|sun)"
    r"| in (?!(?:an?|my|his|her|our|their|the|this|that|these|those|some|every|each|all|both|one|video|games?)\b)"
    r"[a-z]+(?: [a-z]+)?)"
)
"""Pattern of where or when somebody has a condition; "stutter in my game" is none, as the game has it."""

SYMPTOM = (
    r"(?:(?:an?|the|really|such|quite) )*(?:(?:bad|terrible|awful|horrible|severe|splitting|mild|itchy|nasty|really bad"
    r"|skin|panic|stomach|tummy|asthma|acid|hot) )*(?:migraines?|headaches?|heartburn|hives|rash(?:es)?|reflux|cramps?"
    r"|indigestion|nausea|insomnia|nightmares|palpitations|nosebleeds?|hiccups|bloating|diarrh?oea|eczema|spots|acne"
    r"|(?:stomach|tummy|belly|back|tooth)[ -]?aches?|attacks?|flushes|vertigo|anxiety|the runs)"
)
"""Pattern of what a food or a situation gives somebody."""
MADE = (
    r"(?:(?:really|very|so|quite|terribly|physically|always|a bit|a little) )*"
    r"(?:sick|ill|nauseous|queasy|dizzy|drowsy|sleepy|jittery"
    r"|bloated|itchy|anxious|sneeze|wheeze|itch|carsick|seasick|break out(?: in (?:hives|a rash|spots))?"
    r"|throw up|cough)"
)
"""Pattern of what a food or a situation makes somebody."""

DRUG = (
    r"(?i:(?:(?:blood|beta|antacid|sleeping|iron|birth control|allergy|blood pressure|heart|vitamin|high-dose) )?"
    r"(?:ibuprofen|paracetamol|tylenol|aspirin|naproxen|insulin|warfarin|levothyroxine|thyroxine|antidepressants?"
    r"|antihistamines?|antibiotics?|thinners|blockers|statins?|steroids?|melatonin|hrt|lithium|codeine|morphine"
    r"|ritalin|adderall|concerta|prozac|zoloft|xanax|ozempic|wegovy|vitamin [a-z]\d*|b12|magnesium|iron|zinc|creatine"
    r"|omega[- ]3|probiotics?|pills|tablets|medication|prednisone|prednisolone|methotrexate|\w{3,}(?:formin|pril|statin"
    r"|olol|sartan|prazole|cillin|zepam|oxetine|traline|alopram|triptan|dipine|gliptin|gliflozin|glutide|mab|mycin"
    r"|cycline|tadine|tirizine|fenac|profen|coxib)))(?![\w-])"
)
"""Pattern of a medicine or a supplement."""
