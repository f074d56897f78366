---The suggestion at the cursor: asked for, shown, typed through, accepted. There is one at most, as
---there is one cursor in Insert mode.
local client = require('codespec.client')
local compat = require('codespec.compat')
local config = require('codespec.config')
local edit = require('codespec.edit')
local ghost = require('codespec.ghost')
local mark = require('codespec.mark')
local scope = require('codespec.scope')
local suggestion = require('codespec.suggestion')

local api = vim.api
local M = {}

local INVOKED, AUTOMATIC = 1, 2
local anchors = api.nvim_create_namespace('codespec.anchor')

---@class codespec.Shown
---@field buf integer
---@field anchor integer Extmark where the suggestions begin.
---@field suggestions codespec.Suggestion[]
---@field index integer The one that is shown.
---@field cycled boolean Whether `suggestions` are all there are.
---@field once boolean Shown until the next edit: it was ready, and was asked for.

---@type codespec.Shown?
local shown
---@type { id: integer, client: vim.lsp.Client }?
local pending
---Where the last suggestion was shown or asked for: nothing has happened while it is the same.
local seen = ''
local timer = assert(vim.uv.new_timer())
local waiting = false
local n_asked = 0

---Called when a request begins or ends.
M.on_thinking = function() end
---Called when a request was answered, and when what is shown is taken away without a change of text.
M.on_shown = function() end

local function cursor()
  local at = api.nvim_win_get_cursor(0)
  return at[1] - 1, at[2]
end

local function inserting()
  local mode = api.nvim_get_mode().mode
  return mode:sub(1, 1) == 'i' or mode:sub(1, 2) == 'ni'
end

---Changes whenever the buffer, its text or the cursor do.
local function moment()
  local row, col = cursor()
  local buf = api.nvim_get_current_buf()
  return ('%d %d %d %d'):format(buf, api.nvim_buf_get_changedtick(buf), row, col)
end

function M.thinking()
  return pending ~= nil
end

---Whether a request is under way or about to be made.
function M.busy()
  return waiting or pending ~= nil
end

local function cancel()
  timer:stop()
  waiting = false
  n_asked = n_asked + 1 -- a reply that is under way already is too late
  if pending then
    compat.cancel(pending.client, pending.id)
    pending = nil
    M.on_thinking()
  end
end

local function clear()
  if shown then
    ghost.hide(shown.buf)
    if api.nvim_buf_is_valid(shown.buf) then
      api.nvim_buf_clear_namespace(shown.buf, anchors, 0, -1)
    end
    shown = nil
  end
end

---@class codespec.Fit
---@field suggestion codespec.Suggestion
---@field rest codespec.Rest
---@field typed string
---@field row integer
---@field col integer

---How the `index`-th suggestion fits the text at the cursor; nil where it does not.
---@param index? integer
---@return codespec.Fit?
local function fit(index)
  if not shown or api.nvim_get_current_buf() ~= shown.buf then
    return nil
  end
  local row, col = cursor()
  local anchor = api.nvim_buf_get_extmark_by_id(shown.buf, anchors, shown.anchor, {})
  if not anchor[1] or anchor[1] > row or (anchor[1] == row and anchor[2] > col) then
    return nil
  end
  local typed = api.nvim_buf_get_text(shown.buf, anchor[1], anchor[2], row, col, {})
  local line = api.nvim_buf_get_lines(shown.buf, row, row + 1, true)[1]
  local chosen = shown.suggestions[index or shown.index]
  typed = table.concat(typed, '\n')
  local rest = suggestion.rest(chosen, typed, line:sub(col + 1))
  return rest and { suggestion = chosen, rest = rest, typed = typed, row = row, col = col }
end

---Draw what fits; false, and nothing is shown any more, where nothing does.
local function redraw()
  local fits = fit()
  if not fits then
    clear()
    return false
  end
  ghost.show(shown.buf, fits.row, fits.col, fits.rest)
  return true
end

local function tell_shown()
  client.notify('textDocument/didShowCompletion', { item = shown.suggestions[shown.index].item })
end

---@param items table[] From the server, for the place where the cursor is.
---@param invoked boolean
---@param skip integer How many to go on by.
---@param once boolean Until the next edit.
local function adopt(buf, items, invoked, skip, once)
  local before = fit()
  local row, col = cursor()
  local after = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]:sub(col + 1)
  local encoding = client.get().offset_encoding
  local found, index = {}, 1
  for _, item in ipairs(items) do
    local n_replaced = compat.n_replaced(item, after, encoding)
    local id = item.command and item.command.arguments[1]
    local candidate = { text = item.insertText, tail = after:sub(n_replaced + 1), item = item, id = id }
    if suggestion.rest(candidate, '', after) then
      found[#found + 1] = candidate
      if before and candidate.text == before.rest.text then
        index = #found
      end
    end
  end
  if #found == 0 then
    return -- what is shown, and still fits, is better than nothing
  end
  clear()
  shown = {
    buf = buf,
    anchor = api.nvim_buf_set_extmark(buf, anchors, row, col, { right_gravity = false }),
    suggestions = found,
    index = (index - 1 + skip) % #found + 1,
    cycled = invoked and not once,
    once = once,
  }
  if redraw() and not (before and shown.suggestions[shown.index].text == before.rest.text) then
    tell_shown()
  end
end

---The model has gone on with a suggestion that is shown, whatever was typed of it meanwhile.
---@param id string
---@param item table
function client.on_grown(id, item)
  for _, known in ipairs(shown and shown.suggestions or {}) do
    if known.id == id and vim.startswith(item.insertText, known.text) then
      known.text, known.item = item.insertText, item
      if inserting() then
        redraw()
      end
    end
  end
end

---@param kind integer
---@param skip integer
local function request(kind, skip)
  cancel()
  local server = client.get()
  local buf = api.nvim_get_current_buf()
  if not server or not inserting() or not vim.lsp.buf_is_attached(buf, server.id) then
    return
  end
  local now, number, once = moment(), n_asked, kind == INVOKED and client.has_ready()
  local params = vim.lsp.util.make_position_params(0, server.offset_encoding)
  params.context = { triggerKind = kind }
  local ok, id = compat.request(server, 'textDocument/inlineCompletion', params, function(_, result)
    if number ~= n_asked then
      return
    end
    pending = nil
    M.on_thinking()
    if now == moment() and inserting() then
      adopt(buf, result and (result.items or result) or {}, kind == INVOKED, skip, once)
    end
    M.on_shown()
  end, buf)
  if ok and id then
    pending = { id = id, client = server }
    M.on_thinking()
  end
end

---The text or the cursor may have changed.
---@param entered? boolean Insert mode began here, or the server became ready.
function M.update(entered)
  local now = moment()
  if now == seen and not entered then
    return
  end
  local last_buf, last_tick = seen:match('^(%d+) (%d+)')
  local buf, tick = now:match('^(%d+) (%d+)')
  seen = now
  cancel()
  local only_moved = buf == last_buf and tick == last_tick
  if not only_moved then
    mark.clear()
  end
  if shown and shown.once and not only_moved then
    clear()
  end
  redraw()
  if (only_moved and not entered) or not inserting() or scope.why_off(api.nvim_get_current_buf()) then
    return
  end
  waiting = true
  timer:start(config.current.debounce_ms, 0, function()
    vim.schedule(function()
      if waiting and moment() == now then
        request(AUTOMATIC, 0)
      end
    end)
  end)
end

---Insert mode, or the buffer, was left.
function M.leave()
  cancel()
  clear()
  mark.clear()
  seen = ''
  M.on_shown()
end

---Insert mode may have been left in a way that tells nobody: <C-c>, or <Insert> to Replace mode.
function M.look()
  if (shown or pending) and not inserting() then
    M.leave()
  end
end

---The server ended or was told something new: nothing of before counts.
function M.refresh()
  if inserting() then
    M.update(true)
  else
    M.leave()
  end
end

---@return string? text What is shown and would be inserted, nil if nothing is.
function M.text()
  local fits = fit()
  return fits and fits.rest.text
end

---Remove the suggestion until the text changes.
---@return boolean done
function M.dismiss()
  local was_shown = fit() ~= nil
  cancel()
  clear()
  seen = inserting() and moment() or ''
  M.on_shown()
  return was_shown
end

---Ask for suggestions here, whatever is switched off.
function M.trigger()
  request(INVOKED, 0)
end

---@param step integer Which one to show next, 1 or -1; more are asked for the first time.
---@return boolean done
function M.cycle(step)
  if not fit() then
    M.trigger()
    return false
  elseif not shown.cycled then
    request(INVOKED, step)
    return true
  end
  for i = 1, #shown.suggestions do
    local index = (shown.index - 1 + step * i) % #shown.suggestions + 1
    if fit(index) then
      shown.index = index
      break
    end
  end
  if redraw() then
    tell_shown()
  end
  return true
end

---@param fits codespec.Fit
---@param n integer How many bytes of the rest.
local function insert(fits, n)
  local buf = shown.buf
  local text = edit.insert(buf, fits.row, fits.col, fits.rest, n)
  local item = fits.suggestion.item
  if n < #fits.rest.text then
    client.notify('textDocument/didPartiallyAcceptCompletion', {
      item = item,
      acceptedLength = compat.utf16_length(fits.typed .. text),
    })
    if shown.once then
      seen = moment() -- no edit of the user's
      redraw()
      return
    end
    M.update()
    return
  end
  clear()
  client.accepted(item)
  M.update()
end

---Insert a part of what is shown.
---@param length? fun(text: string): integer How many bytes of the rest; all by default.
---@return boolean done
function M.accept(length)
  local fits = fit()
  if not fits then
    return false
  end
  local n = length and length(fits.rest.text) or #fits.rest.text
  local ok, message = pcall(insert, fits, n)
  if not ok and tostring(message):find('E565', 1, true) then
    -- Text is locked while an <expr> mapping is evaluated.
    vim.schedule(function()
      local later = fit()
      if later and vim.startswith(later.rest.text, fits.rest.text) then -- it may have grown
        insert(later, n)
      end
    end)
  elseif not ok then
    error(message, 0)
  end
  return true
end

return M
