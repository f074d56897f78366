---Next edits: asked for after each change, drawn where they lie. One key goes there, the same key
---makes the edit.
local client = require('codespec.client')
local compat = require('codespec.compat')
local config = require('codespec.config')
local scope = require('codespec.scope')
local view = require('codespec.edit_view')

local api = vim.api
local M = {}

local DEBOUNCE_MS = 60
---So long an edit waits for what is suggested at the cursor.
local HOLD_MS = 400

---@class codespec.NextEdit As the server sends it.
---@field text string
---@field old string
---@field range lsp.Range
---@field textDocument { uri: string, version: integer? }
---@field command lsp.Command
---@field number integer
---@field count integer

local timer = assert(vim.uv.new_timer())
local current ---@type codespec.NextEdit?
local told = false -- the server knows that the edit was shown
local n_asked = 0
local waiting = false
local held = false
local making = false
local seen_tick = ''

---Whether an edit is asked for or about to be.
function M.busy()
  return waiting
end

---@param text string
local function lines_of(text)
  return vim.split((text:gsub('\r\n?', '\n')), '\n', { plain = true })
end

---A server and Neovim may spell the same URI in two ways, so file names are compared.
---@param edit codespec.NextEdit
---@return integer? buf of the edit, where it is loaded.
local function buffer_of(edit)
  local name = vim.uri_to_fname(edit.textDocument.uri)
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return api.nvim_buf_is_loaded(buf) and vim.uri_to_fname(vim.uri_from_bufnr(buf)) == name
  end)
end

---Where an edit lies; nil where its buffer is not loaded, cannot be changed, or where other text
---stands there by now.
---@param edit codespec.NextEdit
---@return codespec.Placed?
local function placed(edit)
  local buf, server = buffer_of(edit), client.get()
  if not buf or not server or vim.bo[buf].readonly or not vim.bo[buf].modifiable then
    return nil
  end
  local function byte(position)
    local line = api.nvim_buf_get_lines(buf, position.line, position.line + 1, false)[1]
    return line and compat.to_byte(line, position.character, server.offset_encoding)
  end
  local first, last = edit.range.start, edit.range['end']
  local row, end_row, n_lines = first.line, last.line, api.nvim_buf_line_count(buf)
  local old, new = lines_of(edit.old), lines_of(edit.text)
  local col, end_col = byte(first), byte(last)
  if end_row == n_lines and end_col == nil and n_lines > 0 then
    -- The server counts an empty line behind the last line end, and Neovim does not.
    end_row, end_col = n_lines - 1, #api.nvim_buf_get_lines(buf, -2, -1, false)[1]
    if old[#old] == '' and #old > 1 then
      old[#old] = nil
    end
    if row == n_lines then
      row, col = end_row, end_col
      table.insert(new, 1, '')
    end
    if new[#new] == '' and #new > 1 then
      new[#new] = nil
    end
  end
  if not col or not end_col then
    return nil
  end
  local there = api.nvim_buf_get_text(buf, row, col, end_row, end_col, {})
  if not vim.deep_equal(there, old) then
    return nil
  end
  return { buf = buf, row = row, col = col, end_row = end_row, end_col = end_col, old = old, new = new }
end

---@param place codespec.Placed
local function is_here(place)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  return api.nvim_get_current_buf() == place.buf and row >= place.row and row <= place.end_row
end

---@param edit codespec.NextEdit
---@return { command: { arguments: any[] } }
local function item(edit)
  return { command = { arguments = edit.command.arguments } }
end

---Whether a suggestion at the cursor is shown, or is about to be: one thing is offered at a time.
local function is_covered()
  local inline = require('codespec.inline')
  return inline.text() ~= nil or (held and inline.busy())
end

---Draw the edit anew: the text, the cursor, the window or what is suggested is another one.
local function draw()
  view.hide()
  if not current or is_covered() then
    return
  end
  local edit, buf = current, api.nvim_get_current_buf()
  local place = placed(edit)
  if place and place.buf == buf then
    view.show(place)
  elseif buffer_of(edit) and not place then
    current = nil -- its old text is gone
    return
  end
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local words = edit.count > 1 and ('(%d of %d)'):format(edit.number, edit.count) or ''
  if not place or not is_here(place) then
    local line = edit.range.start.line + 1
    local where = 'line ' .. line
    if not place or place.buf ~= buf then
      local path = vim.uri_to_fname(edit.textDocument.uri)
      where = ('%s:%d'):format(vim.fn.fnamemodify(path, ':.'), line)
    end
    words = vim.trim(('→ %s %s'):format(where, words))
  end
  if words ~= '' then
    view.hint(buf, row, words)
  end
  if not told then
    told = true
    client.notify('textDocument/didShowInlineEdit', { item = item(edit) })
  end
end

---Forget the edit, and every answer that is under way.
function M.clear()
  timer:stop()
  n_asked, waiting, held, current, told = n_asked + 1, false, false, nil, false
  view.hide()
end

---@param buf integer
local function may_ask(buf)
  local server = client.get()
  if not config.current.next_edits or not server or scope.why_off(buf) then
    return nil
  end
  return vim.lsp.buf_is_attached(buf, server.id) and api.nvim_buf_get_name(buf) ~= '' and server or nil
end

---@param method string
---@param handler fun(edits: codespec.NextEdit[])
---@return boolean asked
local function request(method, handler)
  local buf = api.nvim_get_current_buf()
  local server = may_ask(buf)
  if not server then
    return false
  end
  local params = vim.lsp.util.make_position_params(0, server.offset_encoding)
  compat.request(server, method, params, function(_, result)
    handler(type(result) == 'table' and result.edits or {})
  end, buf)
  return true
end

---Ask for the next edit of the current buffer, at once.
function M.ask()
  timer:stop()
  n_asked = n_asked + 1
  local number, buf = n_asked, api.nvim_get_current_buf()
  local tick = vim.b[buf].changedtick
  waiting = request('textDocument/copilotInlineEdit', function(edits)
    local is_old = number ~= n_asked or vim.b[buf].changedtick ~= tick
    if is_old or api.nvim_get_current_buf() ~= buf then
      return
    end
    waiting, held, current, told = false, true, edits[1], false
    timer:start(HOLD_MS, 0, vim.schedule_wrap(function()
      held = false
      M.moved()
    end))
    draw()
  end)
end

---The text changed.
function M.update()
  local buf = api.nvim_get_current_buf()
  local tick = ('%d %d'):format(buf, vim.b[buf].changedtick)
  if tick == seen_tick or making then
    return
  end
  seen_tick = tick
  M.clear()
  if may_ask(buf) then
    waiting = true
    timer:start(DEBOUNCE_MS, 0, vim.schedule_wrap(M.ask))
  end
end

---The cursor moved, another buffer is shown, or what is suggested at the cursor changed.
function M.moved()
  if current then
    draw()
  end
end

---Another buffer is shown: what is in it now is no change.
function M.entered()
  local buf = api.nvim_get_current_buf()
  seen_tick = ('%d %d'):format(buf, vim.b[buf].changedtick)
  M.moved()
end

---@param place codespec.Placed
---@param edit codespec.NextEdit
local function make(place, edit)
  making = true
  local buf, new = place.buf, place.new
  vim.bo[buf].undolevels = vim.bo[buf].undolevels -- undone by itself
  api.nvim_buf_set_text(buf, place.row, place.col, place.end_row, place.end_col, new)
  local last = math.min(place.row + #new, api.nvim_buf_line_count(buf))
  local line = api.nvim_buf_get_lines(buf, last - 1, last, false)[1]
  local col = #new == 1 and place.col + #new[1] or #new[#new]
  api.nvim_win_set_cursor(0, { last, math.min(col, #line) })
  M.clear()
  making = false
  seen_tick = ('%d %d'):format(buf, vim.b[buf].changedtick)
  client.accepted(edit)
  M.ask()
end

---Go to the edit, or make it where the cursor is in its lines already. False if there is none.
---@return boolean done
function M.go()
  local edit = current
  if not edit or is_covered() then
    return false
  end
  local place = placed(edit)
  if place and is_here(place) then
    make(place, edit)
    return true
  elseif buffer_of(edit) and not place then
    M.clear()
    return false
  end
  if not place then
    vim.cmd.edit(vim.fn.fnameescape(vim.uri_to_fname(edit.textDocument.uri)))
    place = placed(edit)
  elseif place.buf ~= api.nvim_get_current_buf() then
    vim.cmd.buffer(place.buf)
  else
    vim.cmd.normal({ "m'", bang = true })
  end
  if place then
    api.nvim_win_set_cursor(0, { place.row + 1, place.col })
  else
    M.clear() -- other text stands there, or it cannot be changed
  end
  draw()
  return true
end

---The user does not want the edit: it does not come again here. False if there is none.
---@return boolean done
function M.dismiss()
  local edit = current
  if not edit or is_covered() then
    return false
  end
  client.notify('textDocument/didDismissInlineEdit', { item = item(edit) })
  M.clear()
  return true
end

---Whether one is shown.
---@return boolean
function M.has()
  return current ~= nil and not is_covered()
end

---List all places in the quickfix window.
function M.list()
  local asked = request('textDocument/nextEdits', function(edits)
    local entries = vim.tbl_map(function(edit)
      local lines = lines_of(edit.text)
      return {
        filename = vim.uri_to_fname(edit.textDocument.uri),
        lnum = edit.range.start.line + 1,
        text = vim.trim(lines[1] ~= '' and lines[1] or lines[2] or ''),
      }
    end, edits)
    if #entries == 0 then
      return vim.notify('codespec: no place is likely to want an edit')
    end
    vim.fn.setqflist({}, ' ', { title = 'codespec: next edits', items = entries })
    vim.cmd.copen()
  end)
  if not asked then
    vim.notify('codespec: no next edits in this buffer, see :Codespec status')
  end
end

return M
