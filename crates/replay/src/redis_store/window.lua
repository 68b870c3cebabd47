-- Everything that writes the window. Redis runs it alone and wholly: nobody ever sees a half of it.
-- KEYS: the pointer, the stream of the epoch in question (of any epoch for `take`).
-- ARGV: what to do, the caller's fence, the epoch, then what each function below names.
-- The answer is a list of texts: a word, then what the pointer says.
-- What refuses comes before what writes, and the first write needs memory: a full server refuses before anything changed.

local pointer, stream = KEYS[1], KEYS[2]
local what, fence, epoch = ARGV[1], ARGV[2], ARGV[3]
local FIELDS = { 'epoch', 'capacity', 'last', 'held', 'games', 'total', 'garbage' }

-- Numbers as texts without exponent or fraction; they stay far below 2^53.
local function text(number)
  return string.format('%.0f', number)
end

local function number(field)
  return tonumber(redis.call('HGET', pointer, field) or '0')
end

local function answer(word)
  local values = redis.call('HMGET', pointer, unpack(FIELDS))
  local list = { word }
  for n = 1, #FIELDS do
    list[n + 1] = values[n] or '0'
  end
  return list
end

local function positions_of(entry)
  for n = 1, #entry[2], 2 do
    if entry[2][n] == 'p' then
      return tonumber(entry[2][n + 1])
    end
  end
  return 0
end

-- Adds the games from ARGV[first] on (sequence, positions, total, record each) that are newer than `last`.
-- A game without positions only moves `last`.
local function add(first, last, held, games, total)
  for n = first, #ARGV, 4 do
    local sequence, positions = tonumber(ARGV[n]), tonumber(ARGV[n + 1])
    if sequence > last then
      if positions > 0 then
        redis.call('XADD', stream, ARGV[n] .. '-0', 'r', ARGV[n + 3], 'p', ARGV[n + 1], 't', ARGV[n + 2])
        held, games = held + positions, games + 1
      end
      last, total = sequence, ARGV[n + 2]
    end
  end
  return last, held, games, total
end

-- The law: the oldest game goes only while the others still hold `capacity` positions.
local function trim(capacity, held, games)
  while games > 0 do
    local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
    local positions = positions_of(oldest)
    if held - positions < capacity then
      break
    end
    redis.call('XDEL', stream, oldest[1])
    held, games = held - positions, games - 1
  end
  return held, games
end

local function put(last, held, games, total)
  redis.call('HSET', pointer, 'last', text(last), 'held', text(held), 'games', text(games), 'total', total)
end

local functions = {}

-- Takes the window for this fence.
function functions.take()
  redis.call('HSET', pointer, 'fence', fence)
  return answer('ok')
end

-- Appends games that follow the one with sequence ARGV[4].
function functions.append()
  local games = number('games')
  if redis.call('HGET', pointer, 'epoch') ~= epoch or redis.call('XLEN', stream) ~= games then
    return answer('lost')
  end
  local last = number('last')
  if last < tonumber(ARGV[4]) then
    return answer('gap')
  end
  if #ARGV == 4 then
    return answer('ok')
  end
  local total = redis.call('HGET', pointer, 'total')
  local held
  last, held, games, total = add(5, last, number('held'), games, total)
  held, games = trim(number('capacity'), held, games)
  put(last, held, games, total)
  return answer('ok')
end

-- Begins to build a new window beside the one that is read. Until it is switched to it is garbage.
function functions.begin()
  redis.call('HSET', pointer, 'garbage', epoch)
  redis.call('UNLINK', stream)
  return answer('ok')
end

-- Adds games to the window that is being built; ARGV[4] is the newest sequence it has.
function functions.load()
  if redis.call('HGET', pointer, 'garbage') ~= epoch then
    return answer('lost')
  end
  add(5, tonumber(ARGV[4]), 0, 0, '0')
  return answer('ok')
end

-- Makes the built window the one that is read: ARGV[4..] are capacity, last, held, games and total.
function functions.switch()
  local held, games = tonumber(ARGV[6]), tonumber(ARGV[7])
  if redis.call('HGET', pointer, 'garbage') ~= epoch or redis.call('XLEN', stream) ~= games then
    return answer('lost')
  end
  local old = redis.call('HGET', pointer, 'epoch') or '0'
  redis.call('HSET', pointer, 'epoch', epoch, 'capacity', ARGV[4], 'garbage', old)
  held, games = trim(tonumber(ARGV[4]), held, games)
  put(tonumber(ARGV[5]), held, games, ARGV[8])
  return answer('ok')
end

-- Notes that the garbage of this epoch is gone.
function functions.swept()
  if redis.call('HGET', pointer, 'garbage') == epoch then
    redis.call('HSET', pointer, 'garbage', '0')
  end
  return answer('ok')
end

local held_by = redis.call('HGET', pointer, 'fence')
if held_by and tonumber(held_by) > tonumber(fence) then
  return { 'fenced', held_by }
end
if what ~= 'take' and held_by ~= fence then
  return answer('lost')
end
return functions[what]()
