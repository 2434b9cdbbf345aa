"""Closed lists of English words for the rules. Words that are not listed are not found."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def names(text: str) -> frozenset[str]:
    """Return the names of a text, in which commas separate them."""
    return frozenset(map(str.strip, text.split(",")))


PERSON_RELATIONS = words(
    "sister brother wife husband partner fiancé fiancée fiance fiancee spouse son daughter mother father mom mum dad "
    "stepmother stepfather stepson stepdaughter stepsister stepbrother grandmother grandfather grandma grandpa granny "
    "grandson granddaughter aunt uncle cousin niece nephew friend boyfriend girlfriend roommate flatmate housemate "
    "neighbor neighbour colleague coworker co-worker boss manager supervisor mentor mentee father-in-law "
    "mother-in-law brother-in-law sister-in-law coach teacher professor "
    "son-in-law daughter-in-law stepdad stepmum stepmom half-sister half-brother ex-husband ex-wife godson goddaughter "
    "nan nana gran grandad granddad auntie mate gp physio cleaner carer "
    "therapist doctor dentist classmate teammate godmother godfather landlord landlady assistant sibling twin"
)
ANIMAL_RELATIONS = words("dog cat puppy kitten horse parrot rabbit hamster bird fish turtle tortoise pony bunny pet")
PLURAL_RELATIONS = words(
    "sisters brothers sons daughters kids children parents grandparents grandkids grandchildren siblings friends "
    "cousins aunts uncles nieces nephews colleagues coworkers neighbors neighbours roommates classmates teammates "
    "students dogs cats puppies kittens pets in-laws"
)
RELATIVES = (PERSON_RELATIONS | PLURAL_RELATIONS) - words(
    "wife husband partner fiancé fiancée fiance fiancee spouse boyfriend girlfriend roommate flatmate housemate "
    "neighbor neighbour colleague coworker co-worker boss manager supervisor mentor mentee coach teacher professor "
    "gp physio cleaner carer therapist doctor dentist classmate teammate landlord landlady assistant colleagues "
    "coworkers neighbors neighbours roommates classmates teammates students dogs cats puppies kittens pets"
)
"""Relatives and friends, whom nobody replaces."""
GROUP_RELATIONS = frozenset({"family", "team"})
SINGLE_RELATIONS = words(
    "wife husband mother father mom mum dad spouse fiancé fiancée fiance fiancee girlfriend boyfriend boss manager "
    "landlord landlady"
)
"""Relations of which people have one at a time, so that claims with different names contradict each other."""

RELATION_ADJECTIVES = words(
    "older younger elder little big best old new twin eldest oldest youngest late close dear good childhood former "
    "adopted middle baby first second third"
)

ADVERBS = words(
    "also just really recently finally actually currently still now always usually often absolutely totally definitely "
    "truly already even both all genuinely certainly mostly mainly even once simply deeply thoroughly happily "
    "eventually originally previously formerly soon ever personally honestly officially successfully proudly luckily "
    "fortunately quickly immediately normally typically generally regularly especially particularly"
)
HEDGES = words("maybe perhaps probably possibly presumably")

PROFESSIONS = words(
    "accountant actor actress actuary analyst anthropologist archaeologist architect archivist artist astronomer "
    "attorney auditor author baker banker barber barista bartender biologist bookkeeper botanist builder butcher "
    "carpenter cartographer cashier chef chemist chiropractor choreographer cleaner coach comedian composer conductor "
    "consultant contractor cook copywriter counselor counsellor curator dancer dentist dermatologist designer "
    "developer dietitian diplomat director doctor economist editor electrician engineer entrepreneur farmer "
    "filmmaker firefighter fisherman florist forester freelancer gardener geologist goldsmith hairdresser historian "
    "housekeeper illustrator inspector interpreter investigator jeweler jeweller journalist judge laborer landscaper "
    "lawyer lecturer librarian lifeguard linguist locksmith machinist manager mathematician mechanic meteorologist "
    "midwife miner musician nanny neurologist notary novelist nurse nutritionist optician optometrist painter "
    "paralegal paramedic pediatrician pharmacist photographer physician physicist physiotherapist pianist pilot "
    "plumber poet politician postman potter principal producer professor programmer psychiatrist psychologist "
    "realtor receptionist recruiter researcher retailer sailor salesman salesperson saleswoman scientist sculptor "
    "seamstress secretary shopkeeper singer soldier songwriter statistician stylist superintendent surgeon surveyor "
    "tailor teacher technician therapist trader trainer translator tutor undertaker veterinarian vet violinist waiter "
    "waitress webmaster welder writer zoologist student graduate intern apprentice trainee freshman sophomore junior "
    "postdoc volunteer officer instructor administrator caregiver guitarist drummer nun priest pastor rabbi imam monk "
    "veteran"
)

STATES = words(
    "married divorced single widowed engaged pregnant retired unemployed vegetarian vegan pescatarian bilingual "
    "trilingual left-handed right-handed diabetic asthmatic deaf blind self-employed colorblind colourblind "
    "lactose-intolerant gluten-free dyslexic epileptic coeliac celiac anaemic anemic hypertensive teetotal"
)

POSSESSIONS = words(
    "dog dogs cat cats pup pups doggy kitty kitties puppy puppies kitten kittens horse"
    " horses parrot rabbit rabbits hamster bird birds fish turtle "
    "tortoise chickens hens pet pets snake lizard goat goats sheep cow cows pony ponies bees aquarium "
    "car truck van motorcycle motorbike bike bicycle scooter boat sailboat kayak canoe camper caravan trailer "
    "house apartment flat cottage cabin farm garden greenhouse studio workshop balcony "
    "piano guitar violin cello drums keyboard flute ukulele camera telescope microscope laptop tablet printer console "
    "kid kids child children son sons daughter daughters brother brothers sister sisters sibling siblings twins "
    "husband wife boyfriend girlfriend roommate roommates grandchildren grandkids niece nephew cousin cousins "
    "degree degrees diploma certificate license licence doctorate phd bachelor's master's "
    "allergy asthma diabetes insomnia dyslexia adhd anxiety depression migraine migraines arthritis tattoo tattoos "
    "necklace bracelet watch pool fireplace tent bookshelf scar "
    "restaurant bakery shop store blog podcast company business startup collection"
)

LANGUAGES = words(
    "Afrikaans Albanian Amharic Arabic Armenian Basque Bengali Bosnian Bulgarian Burmese Cantonese Catalan Chinese "
    "Croatian Czech Danish Dutch English Esperanto Estonian Farsi Finnish Flemish French"
    " Galician Georgian German Greek "
    "Gujarati Hausa Hebrew Hindi Hungarian Icelandic Igbo Indonesian Irish Italian"
    " Japanese Kazakh Khmer Korean Kurdish "
    "Lao Latin Latvian Lithuanian Macedonian Malay Maltese Mandarin Marathi Mongolian Nepali Norwegian Pashto Persian "
    "Polish Portuguese Punjabi Romanian Russian Sanskrit Serbian Sinhala Slovak Slovenian Somali Spanish Swahili "
    "Swedish Tagalog Tamil Telugu Thai Tibetan Turkish Ukrainian Urdu Uzbek Vietnamese Welsh Xhosa Yiddish Yoruba "
    "Zulu"
)

COUNTRIES = names(
    "Afghanistan, Albania, Algeria, Andorra, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahrain, "
    "Bangladesh, Belarus, Belgium, Belize, Benin, Bhutan, Bolivia, Botswana, Brazil, Bulgaria, Cambodia, Cameroon, "
    "Canada, Cape Verde, Chile, China, Colombia, Costa Rica, Croatia, Cuba, Cyprus, Denmark, Ecuador, Egypt, "
    "England, Eritrea, Estonia, Ethiopia, Fiji, Finland, France, Gabon, Germany, Ghana, Greece, Greenland, "
    "Guatemala, Guinea, Haiti, Honduras, Hungary, Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, "
    "Jamaica, Japan, Kazakhstan, Kenya, Kosovo, Kuwait, Laos, Latvia, Lebanon, Liberia, Libya, Liechtenstein, "
    "Lithuania, Luxembourg, Madagascar, Malaysia, Maldives, Mali, Malta, Mauritius, Mexico, Moldova, Monaco, "
    "Mongolia, Montenegro, Morocco, Mozambique, Myanmar, Namibia, Nepal, Netherlands, New Zealand, Nicaragua, "
    "Nigeria, North Macedonia, Norway, Oman, Pakistan, Panama, Paraguay, Peru, Philippines, Poland, Portugal, "
    "Qatar, Romania, Russia, Rwanda, Saudi Arabia, Scotland, Senegal, Serbia, Singapore, Slovakia, Slovenia, "
    "Somalia, South Africa, South Korea, Spain, Sri Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tanzania, "
    "Thailand, Tunisia, Uganda, Ukraine, Uruguay, Uzbekistan, Venezuela, Vietnam, Wales, Yemen, Zambia, Zimbabwe"
)

REGIONS = names(
    "Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Georgia, Hawaii, Idaho, "
    "Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan, Minnesota, "
    "Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico, New York, "
    "North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota, "
    "Tennessee, Texas, Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming, "
    "Alberta, British Columbia, Manitoba, Nova Scotia, Ontario, Quebec, Saskatchewan"
)
"""States of the USA and provinces of Canada, which people name after a city."""

CITIES = names(
    "Amsterdam, Athens, Atlanta, Auckland, Baghdad, Bangkok, Barcelona, Beijing, Belgrade, Berlin, Bogota, Boston, "
    "Brasilia, Bratislava, Brisbane, Brussels, Bucharest, Budapest, Buenos Aires, Cairo,"
    " Calgary, Cape Town, Caracas, "
    "Casablanca, Chicago, Cologne, Copenhagen, Cracow, Dakar, Delhi, Detroit, Dubai, Dublin, Edinburgh, Frankfurt, "
    "Geneva, Glasgow, Hamburg, Hanoi, Havana, Helsinki, Hong Kong, Istanbul, Jakarta, Jerusalem, Johannesburg, "
    "Karachi, Kathmandu, Kyiv, Kyoto, Lagos, Lima, Lisbon, Liverpool, London, Los Angeles, Lyon, Madrid, Manila, "
    "Marrakesh, Marseille, Melbourne, Mexico City, Miami, Milan, Minsk, Montevideo,"
    " Montreal, Moscow, Mumbai, Munich, "
    "Nairobi, Naples, New Delhi, New Orleans, New York, Osaka, Oslo, Ottawa, Paris, Philadelphia, Prague, Quito, "
    "Recife, Reykjavik, Riga, Rio de Janeiro, Rome, Rotterdam, San Diego, San Francisco,"
    " Santiago, Sao Paulo, Seattle, "
    "Seoul, Seville, Shanghai, Sofia, Stockholm, Stuttgart, Taipei, Tallinn, Tehran, Tel"
    " Aviv, Tokyo, Toronto, Tunis, "
    "Turin, Valencia, Vancouver, Venice, Vienna, Vilnius, Warsaw, Washington, Zagreb, Zurich, "
    "Aberdeen, Adelaide, Ankara, Antwerp, Baltimore, Belfast, Bergen, Birmingham, Bologna, Bordeaux, Bradford, Bremen, "
    "Brighton, Bristol, Bruges, Cardiff, Cincinnati, Coventry, Cleveland, Delft, Dresden, Dundee, Dusseldorf, "
    "Düsseldorf, Eindhoven, Exeter, Galway, Ghent, Gothenburg, Groningen, Inverness, Krakow, Leeds, Leicester, "
    "Leipzig, Limerick, Ljubljana, Manchester, Milwaukee, Minneapolis, Newcastle, Norwich, Nottingham, Nuremberg, "
    "Pittsburgh, Plymouth, Portland, Porto, Portsmouth, Rennes, Sacramento, Salzburg, San Jose, Sheffield, "
    "Southampton, Strasbourg, Swansea, Sydney, The Hague, Toulouse, Utrecht, Wellington, Wolverhampton, York, "
    "Winnipeg, Zaragoza"
)

TOWNS = names(
    "Aarhus, Alicante, Austin, Bangalore, Basel, Bern, Bilbao, Bolton, Bournemouth, Braga, Cambridge, Canberra, "
    "Canterbury, Chennai, Chester, Christchurch, Coimbra, Dallas, Denver, Derby, Dortmund, Durham, Faro, Florence, "
    "Gdansk, Genoa, Granada, Graz, Grenoble, Guildford, Hanover, Houston, Ipswich, Kraków, Lancaster, Lausanne, "
    "Leiden, Lille, Lincoln, Linz, Lund, Luton, Malaga, Malmö, Milton Keynes, Nantes, Nashville, Odense, Oxford, "
    "Palermo, Perth, Poznan, Salford, Stavanger, Sunderland, Trondheim, Turku, Uppsala, Vigo, Worcester, Wroclaw"
)
"""Further towns, for claims that name one where somebody may live. Names of people are not told from them in talk."""

COMMON_CAPITALS = words(
    "I A An The This That These Those He She It We You They My Your His Her Its Our Their Mine Yours Who What When "
    "Where Why How Which And But Or So If Then Because Since While After Before Also Just Really Maybe Perhaps "
    "Probably Actually Yes Yeah Yep No Nope Not Never Always Sometimes Often Hey Hi Hello Oh Wow Well Thanks Thank "
    "Please Sorry Sure Okay Ok Great Good Nice Awesome Cool Amazing Everyone Everybody Someone Somebody Nobody Anyone "
    "Anybody People Nothing Something Everything Anything One Two Three Some Many Most All Both Each Every Another "
    "Other Such Same Here There Now Today Yesterday Tomorrow Tonight Last Next Mom Mum Dad Mommy Daddy Grandma Grandpa "
    "Granny Sir Madam Man Dude Guys Folks Friend Love Dear Honey God Jesus Lord Monday Tuesday Wednesday Thursday "
    "Mondays Tuesdays Wednesdays Thursdays Fridays Saturdays Sundays "
    "Friday Saturday Sunday January February March April May June July August September October November December "
    "Christmas Easter Thanksgiving Halloween Hanukkah Diwali Ramadan Spring Summer Autumn Fall Winter Internet TV AI "
    "Mr Mrs Ms Dr Prof User Assistant Agent System Bot Human Customer Support Team Admin Lol Haha Bye Goodbye "
    "Congrats Congratulations Cheers Absolutely Definitely Totally Exactly Indeed Glad Happy Excited Looking Take "
    "Keep Let Been Being Have Has Had Do Does Did Is Are Was Were Be Can Could Will Would Should Might Must "
    "Life Time Work Home School Family Nature Art Music"
)
"""Words that are capitalized at the start of a sentence, or by habit, and name nobody."""

PEOPLES = words(
    "American Canadian Mexican Brazilian Argentinian Colombian Chilean Peruvian Cuban"
    " Australian Austrian Belgian Swiss "
    "Indian Egyptian Nigerian Kenyan Ethiopian African Asian European Latino Latina Hispanic Israeli Iraqi Iranian "
    "Pakistani Afghan Syrian Lebanese Moroccan Filipino Filipina British Scottish Catholic Christian Jewish Muslim "
    "Buddhist Hindu Protestant Orthodox Mormon Republican Democrat Black White Aries Taurus Virgo Libra Scorpio "
    "Sagittarius Capricorn Aquarius Pisces"
)
"""Words for peoples, religions, parties and signs, which are capitalized but are no names."""

MACHINE_NAMES = words(
    "assistant agent user bot ai system model human customer chatgpt gpt claude gemini copilot llama mistral grok siri "
    "alexa cortana bard developer tool function planner operator admin support helper chatbot server client me you "
    "person speaker anonymous unknown guest test i"
)
"""Names of speakers that are machines or no particular person."""

ORGANIZATION_ENDINGS = words(
    "Inc Ltd LLC GmbH AG SA PLC Corp Corporation Company Co University College Institute Institut Bank Hospital "
    "School Academy Foundation Association Agency Ministry Department Group Holdings Labs Laboratories Museum "
    "Library Council Committee Society Union Clinic Airlines Airways Records Studios Partners Ventures Technologies "
    "Systems Software Industries Pharmaceuticals Insurance Press Bakery Publishers"
)

PLACE_ENDINGS = words(
    "Street Avenue Road Boulevard Square Park Beach Lake River Island Islands Mountain Mountains Valley Bay Coast "
    "County City Village Hills Forest Desert Canyon Peninsula"
)
