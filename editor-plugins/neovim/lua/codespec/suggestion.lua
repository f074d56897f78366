---A suggestion as text: no buffers, no events, no server.
---
---`text` is to be inserted at an anchor, in place of closing brackets or quotes that stand there
---and are repeated in it. Between the anchor and the cursor lies what was typed or accepted of it.
local M = {}

local CLOSING = '[)%]}>"\'`;,]'

---@class codespec.Suggestion
---@field text string Lines end with \n.
---@field tail string What the cursor's line ends with that the suggestion leaves alone.
---@field item table The server's item, for its command.
---@field id? string What the server calls it, however much it grows.

---@class codespec.Rest
---@field text string What is still to be inserted at the cursor.
---@field replaced string What stands at the cursor and is in `text`, too.

---`replaced` as places in `text` (from 1), each found as early as possible; nil where it is not in it.
---@param text string
---@param replaced string
---@return integer[]?
local function places(text, replaced)
  local found, from = {}, 1
  for char in replaced:gmatch('.') do
    local at = text:find(char, from, true)
    if not at then
      return nil
    end
    found[#found + 1] = at
    from = at + 1
  end
  return found
end

---What is left of a suggestion, or nil where it does not fit the text (any more).
---@param suggestion codespec.Suggestion
---@param typed string Text between anchor and cursor.
---@param after string The cursor's line after the cursor.
---@return codespec.Rest?
function M.rest(suggestion, typed, after)
  local n_replaced = #after - #suggestion.tail
  if
    not vim.startswith(suggestion.text, typed)
    or #typed == #suggestion.text
    or n_replaced < 0
    or after:sub(n_replaced + 1) ~= suggestion.tail
  then
    return nil
  end
  local rest = { text = suggestion.text:sub(#typed + 1), replaced = after:sub(1, n_replaced) }
  if rest.replaced:gsub(CLOSING, '') ~= '' or not places(rest.text, rest.replaced) then
    return nil
  end
  return rest
end

---The first `n` bytes of a rest: how many bytes after the cursor they replace.
---@param rest codespec.Rest
---@param n integer
---@return integer
function M.n_replaced(rest, n)
  if n == #rest.text then
    return #rest.replaced
  end
  local count = 0
  for _, at in ipairs(places(rest.text, rest.replaced) or {}) do
    count = count + (at <= n and 1 or 0)
  end
  return count
end

---How to show a rest: what to draw after how many bytes of what stands at the cursor, and the lines
---below.
---@param rest codespec.Rest
---@return { [1]: integer, [2]: string }[] pieces
---@return string[] below
function M.layout(rest)
  local lines = vim.split(rest.text, '\n', { plain = true })
  local first, pieces, from, shown = lines[1], {}, 1, 0
  for _, at in ipairs(places(rest.text, rest.replaced) or {}) do
    if at > #first then
      break
    end
    pieces[#pieces + 1] = { shown, first:sub(from, at - 1) }
    from, shown = at + 1, shown + 1
  end
  pieces[#pieces + 1] = { shown, first:sub(from) }
  pieces = vim.tbl_filter(function(piece)
    return piece[2] ~= ''
  end, pieces)
  return pieces, vim.list_slice(lines, 2)
end

---Bytes of `text` up to the end of its first word: letters, digits and everything that is not ASCII,
---or a run of other characters, with the white space before.
---@param text string
---@return integer
function M.word_length(text)
  local _, space = text:find('^%s*')
  local _, word = text:find('^[%w_\128-\255]+', space + 1)
  local _, other = text:find('^[^%w_%s\128-\255]+', space + 1)
  return word or other or #text
end

---Bytes of `text` up to the end of its first line that is not empty.
---@param text string
---@return integer
function M.line_length(text)
  local _, empty = text:find('^%s*\n')
  local at = text:find('\n', (empty or 0) + 1, true)
  return at and at - 1 or #text
end

return M
