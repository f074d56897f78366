-- Writes doc/codespec.txt from README.md and the comments in the sources: nvim -l scripts/vimdoc.lua
local here = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h')
local WIDTH = 78

local function read(path)
  return vim.fn.readfile(here .. '/' .. path)
end

local out = {}

local function put(line)
  out[#out + 1] = line
end

---Text in lines of at most WIDTH, each after `indent`.
local function wrap(text, indent, first)
  local line = first or indent
  for word in text:gmatch('%S+') do
    if vim.fn.strdisplaywidth(line .. word) > WIDTH and line:find('%S') then
      put((line:gsub('%s+$', '')))
      line = indent
    end
    line = line .. word .. ' '
  end
  put((line:gsub('%s+$', '')))
end

local function tagged(text, tag)
  local mark = '*' .. tag .. '*'
  put(text .. (' '):rep(math.max(1, WIDTH - #text - #mark)) .. mark)
end

local function section(title)
  put(('='):rep(WIDTH))
  tagged(title, 'codespec-' .. title:lower():gsub('%s+', '-'))
  put('')
end

local function from_readme()
  local paragraph, code = {}, false
  local function flush()
    if #paragraph > 0 then
      local text = table.concat(paragraph, ' ')
      wrap(text:gsub('^%- ', ''), text:find('^%- ') and '  ' or '', text:find('^%- ') and '- ' or '')
      put('')
      paragraph = {}
    end
  end
  local begun = false
  for _, line in ipairs(read('README.md')) do
    local title = line:match('^## (.*)')
    local language = line:match('^```(.*)')
    if title then
      flush()
      section(title)
      begun = true
    elseif begun and language then
      flush()
      code = not code
      if code then
        out[#out] = nil
        put('>' .. language)
      else
        put('<')
        put('')
      end
    elseif begun and code then
      put('    ' .. line)
    elseif begun and line:find('^!%[') then
      flush()
    elseif begun and (line == '' or line:find('^%- ')) then
      flush()
      paragraph = line ~= '' and { line } or {}
    elseif begun then
      paragraph[#paragraph + 1] = vim.trim(line)
    end
  end
  flush()
end

---Calls handle(comment, line) for each line after a comment, the comment without its dashes.
local function commented(path, handle)
  local comment = {}
  for _, line in ipairs(read(path)) do
    local text = line:match('^%-%-%-(.*)')
    if text and text:find('^@field') then
      handle(comment, text)
      comment = {}
    elseif text then
      comment[#comment + 1] = text
    else
      handle(comment, line)
      comment = {}
    end
  end
end

local function prose(comment)
  local words = vim.tbl_filter(function(line)
    return not line:find('^@')
  end, comment)
  return table.concat(words, ' ')
end

local function options()
  section('Options')
  wrap('What |codespec.setup()| takes; the defaults are at the end.', '')
  put('')
  commented('lua/codespec/config.lua', function(comment, line)
    local name, kind = line:match('^@field ([%w_]+)%? (.+)$')
    if name then
      tagged(('%s (%s)'):format(name, kind), 'codespec-option-' .. name)
      -- The comment of the class stands before the first field's.
      local at = 1
      for i, text in ipairs(comment) do
        at = text:find('^@class') and i + 1 or at
      end
      wrap(prose(vim.list_slice(comment, at)), '    ')
      put('')
    end
  end)
  put('Defaults: >lua')
  local inside = false
  for _, line in ipairs(read('lua/codespec/config.lua')) do
    inside = inside or line:find('^M.defaults = {') ~= nil
    if inside then
      put('    ' .. line:gsub('^M.defaults = ', ''))
      inside = line ~= '}'
    end
  end
  put('<')
  put('')
end

local function functions()
  section('Functions')
  commented('lua/codespec/init.lua', function(comment, line)
    local name, arguments = line:match('^function M%.([%w_]+)%((.-)%)')
    if name then
      tagged(('codespec.%s(%s)'):format(name, arguments), ('codespec.%s()'):format(name))
      wrap(prose(comment), '    ')
      for _, text in ipairs(comment) do
        local what = text:match('^@param (.*)') or text:match('^@return (.*)')
        if what then
          wrap((text:find('^@param') and what or 'Returns: ' .. what), '        ', '      - ')
        end
      end
      put('')
    end
  end)
end

put('*codespec.txt*  Code completion by a model on this machine')
put('')
put('Made from README.md and the sources; see scripts/vimdoc.lua.')
put('')
local contents = #out + 1
from_readme()
options()
functions()
put('vim:tw=78:ts=8:noet:ft=help:norl:')

local list = {}
for _, line in ipairs(out) do
  local tag = line:match('%*(codespec%-[%w-]+)%*$')
  local title = line:match('^(%u.-)%s+%*codespec%-[%w-]+%*$')
  if tag and title and not tag:find('^codespec%-option%-') then
    list[#list + 1] = ('    %s %s |%s|'):format(title, ('.'):rep(40 - #title), tag)
  end
end
list[#list + 1] = ''
for i = #list, 1, -1 do
  table.insert(out, contents, list[i])
end
vim.fn.mkdir(here .. '/doc', 'p')
vim.fn.writefile(out, _G.arg and _G.arg[1] or here .. '/doc/codespec.txt')
