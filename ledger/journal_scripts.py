"""The scripts of the journal, which Redis runs: each says which keys and arguments it takes."""

# new ids follow those in PostgreSQL, whatever the clock says; an error means that they already do
CONTINUE_IDS = """
local function continue_ids(journal, last)
    if last ~= '' and type(redis.pcall('XADD', journal, last, 'event', 'none')) == 'string' then
        redis.call('XDEL', journal, last)
    end
end
"""

# ledger, epoch, restored, journal; last stream id, then item keys and values
REBUILD = (
    CONTINUE_IDS
    + """
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('SISMEMBER', KEYS[3], KEYS[1]) == 1 then
    return 0
end
continue_ids(KEYS[4], ARGV[1])
redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('SADD', KEYS[3], KEYS[1])
return 1
"""
)

# restored, journal; token, last stream id
BEGIN = (
    CONTINUE_IDS
    + """
continue_ids(KEYS[2], ARGV[2])
return redis.call('SADD', KEYS[1], ARGV[1])
"""
)

# epoch, restored; token. The token is missing if Redis lost its data again in the meantime
FINISH = """
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('UNLINK', KEYS[2])
return 1
"""

# ids as texts of fixed width, because 64-bit numbers lose digits in Lua; `last` is the newest row's id
TAIL = """
local function padded(id)
    local ms, number = string.match(id, '(%d+)-(%d+)')
    return string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #number) .. number
end
local function tail_is_lost(journal, flushed, last)
    local known = redis.call('GET', flushed) or '0-0'
    return padded(last) > padded(known) and #redis.call('XRANGE', journal, last, last) == 0
end
"""

# journal, flushed; the newest row's id
LOOK_FOR_TAIL = f"{TAIL} return tail_is_lost(KEYS[1], KEYS[2], ARGV[1])"

# journal, flushed, epoch, restored; the newest row's id
DROP_EPOCH_IF_TAIL_LOST = (
    TAIL
    + """
if tail_is_lost(KEYS[1], KEYS[2], ARGV[1]) then
    redis.call('UNLINK', KEYS[3], KEYS[4])
    redis.call('SET', KEYS[2], ARGV[1])
end
"""
)

# journal, flushed; ids. A missing id proves nothing: this Redis may be an older copy than the one it was read from
DELETE_ENTRIES = (
    TAIL
    + """
local flushed = redis.call('GET', KEYS[2]) or '0-0'
for _, id in ipairs(ARGV) do
    if redis.call('XDEL', KEYS[1], id) == 1 and padded(id) > padded(flushed) then
        flushed = id
    end
end
redis.call('SET', KEYS[2], flushed)
"""
)


# flushed; the newest row's id
LOOK_FOR_LOST_ROWS = f"{TAIL} return padded(redis.call('GET', KEYS[1]) or '0-0') > padded(ARGV[1])"

# flushed; its value that was compared with the rows, the newest row's id
FOLLOW_ROWS = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end"

# needs a function that journals a change, and the items and values by the rows: in `rows`, and from `first` in ARGV on
DIFFERENCES = """
local changed = 0
for i = first, #ARGV, 2 do
    if redis.call('HGET', KEYS[1], ARGV[i]) ~= ARGV[i + 1] then
        journal('evicted', ARGV[i], '')
        changed = 1
    end
end
local live = redis.call('HGETALL', KEYS[1])
for i = 1, #live, 2 do
    if rows[live[i]] ~= live[i + 1] then
        journal('marked', live[i], live[i + 1])
        changed = 1
    end
end
"""

# ledger, journal; account, conversation, then items and values by the rows. A change journalled twice is one change
JOURNAL_DIFFERENCES = f"""
local function journal(event, item, value)
    redis.call('XADD', KEYS[2], '*', 'account', ARGV[1], 'conversation', ARGV[2], 'agent', '',
        'event', event, 'item', item, 'value', value)
end
local first, rows = 3, {{}}
for i = first, #ARGV, 2 do
    rows[ARGV[i]] = ARGV[i + 1]
end
{DIFFERENCES}
return changed
"""
