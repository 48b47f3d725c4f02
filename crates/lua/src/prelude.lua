-- Builds the world that scripts see. The chunk gets the functions in Rust as one table and gives back what Rust needs.
local rust = ...
local error, type, tostring, pcall, xpcall = error, type, tostring, pcall, xpcall
local setmetatable, getmetatable, rawget, select, pairs = setmetatable, getmetatable, rawget, select, pairs
local unpack = unpack

local function refuse_change()
  error('Attempt to modify a readonly table', 2)
end

-- A table that can be read and not changed.
local function readonly(original)
  return setmetatable({}, { __index = original, __newindex = refuse_change, __metatable = false })
end

getmetatable('').__metatable = false

local globals = {}
local environment = setmetatable({}, {
  __index = function(_, name)
    local value = rawget(globals, name)
    if value == nil then
      error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
    end
    return value
  end,
  __newindex = refuse_change,
  __metatable = false,
})

for _, name in pairs({ 'assert', 'error', 'getmetatable', 'ipairs', 'next', 'pairs', 'rawequal', 'rawget', 'rawset',
    'select', 'setmetatable', 'tonumber', 'tostring', 'type', 'unpack', '_VERSION', 'gcinfo', 'collectgarbage' }) do
  globals[name] = _G[name]
end
globals._G = environment
globals.string = readonly(string)
globals.table = readonly(table)
globals.coroutine = readonly(coroutine)

local own_math = {}
for name, value in pairs(math) do own_math[name] = value end
own_math.random = rust.random
own_math.randomseed = function(seed) rust.seed(seed) end
globals.math = readonly(own_math)

-- Errors of commands are tables; scripts that catch them get the text. A script that is to end cannot catch that.
local function caught(is_ok, ...)
  if not is_ok then
    if rust.is_killed() then error((...), 0) end
    local problem = ...
    if type(problem) == 'table' and type(problem.err) == 'string' then return false, problem.err end
    return false, rust.plain(problem)
  end
  return true, ...
end
globals.pcall = function(...) return caught(pcall(...)) end
globals.xpcall = function(f, handler)
  return caught(xpcall(f, function(problem) return handler(rust.plain(problem)) end))
end

local function compile(text, name)
  return rust.compile(text, name or text, environment)
end
globals.loadstring = function(text, name)
  if type(text) ~= 'string' then error("bad argument #1 to 'loadstring' (string expected)", 2) end
  return compile(text, name)
end
globals.load = function(source, name)
  local parts = {}
  while true do
    local part = source()
    if part == nil or part == '' then break end
    parts[#parts + 1] = part
  end
  return compile(table.concat(parts), name or '=(load)')
end

local redis = {}
local function one_string(...)
  if select('#', ...) ~= 1 then error({ err = 'ERR wrong number of arguments' }, 0) end
  local text = ...
  return tostring(text)
end
redis.sha1hex = function(...) return rust.sha1hex(one_string(...)) end
redis.error_reply = function(...)
  local text = one_string(...)
  if text:sub(1, 1) == '-' then text = text:sub(2) end
  if not text:find(' ', 1, true) then text = 'ERR ' .. text end
  return { err = text }
end
redis.status_reply = function(...) return { ok = one_string(...) } end
redis.replicate_commands = function() return true end
redis.set_repl = function() end
redis.breakpoint = function() return false end
redis.debug = function() end
redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL = 0, 1, 2, 2, 3
redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = rust.version, rust.version_number

-- What a library registers while its code runs; nil at any other time.
local registered
redis.register_function = function(...)
  if not registered then
    error({ err = 'ERR redis.register_function can only be called on FUNCTION LOAD command' }, 0)
  end
  local entry = ...
  if select('#', ...) == 2 then
    entry = { function_name = (...), callback = (select(2, ...)) }
  elseif select('#', ...) ~= 1 or type(entry) ~= 'table' then
    error({ err = 'ERR wrong number of arguments to redis.register_function' }, 0)
  end
  local name, callback, flags = entry.function_name, entry.callback, entry.flags or {}
  if type(name) ~= 'string' then
    error({ err = 'ERR redis.register_function must get a function name argument' }, 0)
  end
  if type(callback) ~= 'function' then
    error({ err = 'ERR redis.register_function must get a callback argument' }, 0)
  end
  if not name:match('^[%w_]+$') then
    error({ err = 'ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long' }, 0)
  end
  for _, other in pairs(registered) do
    if other.name == name then error({ err = 'ERR Function already exists in the library' }, 0) end
  end
  registered[#registered + 1] = { name = name, callback = callback, flags = flags, description = entry.description }
end
globals.redis = readonly(redis)

local function library(functions, constants)
  for name, value in pairs(constants or {}) do functions[name] = value end
  return readonly(functions)
end
globals.bit = library(rust.bit)
globals.cjson = library(rust.cjson, { null = rust.null, _NAME = 'cjson', _VERSION = '2.1.0' })
globals.cmsgpack = library(rust.cmsgpack, { _NAME = 'cmsgpack', _VERSION = 'lua-cmsgpack 0.4.0' })
globals.struct = library(rust.struct)

local function run(f, ...)
  local arguments, count = { ... }, select('#', ...)
  local is_ok, value = xpcall(function() return f(unpack(arguments, 1, count)) end, rust.handler)
  return is_ok, value
end

return {
  globals = globals,
  redis = redis,
  environment = environment,
  run = run,
  begin_library = function() registered = {} end,
  end_library = function()
    local found = registered
    registered = nil
    return found
  end,
}
