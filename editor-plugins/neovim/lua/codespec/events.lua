---What the editor tells us, and who is told.
local client = require('codespec.client')
local config = require('codespec.config')
local inline = require('codespec.inline')
local mark = require('codespec.mark')
local next_edit = require('codespec.next_edit')
local scope = require('codespec.scope')
local status = require('codespec.status')

local M = {}

local REST_MS = 100

---Errors are shown once, not each time the server repeats them.
local last_error = ''
local was_ready = false

local function own()
  return config.current.ghost_text == 'own'
end

---Attach what belongs attached. Neovim's own ghost text knows no scopes: there, a buffer without
---suggestions is one without a server.
---@param buf integer
local function consider(buf)
  local is_builtin = config.current.ghost_text == 'builtin'
  local why = is_builtin and scope.why_off(buf) or scope.why_not_served(buf)
  if why then
    client.detach(buf)
  else
    client.attach(buf)
    if is_builtin then
      vim.lsp.inline_completion.enable(true, { bufnr = buf })
    end
  end
  status.announce()
end

local resting = assert(vim.uv.new_timer())
local told = ''

local function place()
  return ('%d %d'):format(vim.api.nvim_get_current_buf(), vim.fn.line('.'))
end

---Tell the server where the user is: its status is about that buffer, and it reads ahead what a first
---suggestion there needs.
local function focus()
  resting:stop()
  told = place()
  local buf = vim.api.nvim_get_current_buf()
  local server = client.get()
  if not server or not vim.lsp.buf_is_attached(buf, server.id) then
    return
  end
  local params = { textDocument = { uri = vim.uri_from_bufnr(buf) } }
  if not scope.why_off(buf) then
    params = vim.lsp.util.make_position_params(0, server.offset_encoding)
  end
  client.notify('textDocument/didFocus', params)
end

---The cursor moved. One that only passes a line does not count.
local function moved()
  resting:stop()
  if place() ~= told then
    resting:start(REST_MS, 0, vim.schedule_wrap(focus))
  end
end

local function server_changed()
  local said = client.status
  local is_ready = said ~= nil and not said.busy and said.kind == 'Normal'
  if is_ready and not was_ready then
    vim.schedule(focus)
    if own() then
      -- Text typed before had no answer.
      vim.schedule(inline.refresh)
    end
  end
  was_ready = is_ready
  local message = client.failure or (said and said.kind == 'Error' and said.message) or ''
  if message ~= '' and message ~= last_error then
    vim.schedule(function()
      -- In one line: whoever is typing shall not have to press a key for it. `:Codespec status`
      -- shows it all.
      local text = 'codespec: ' .. message:gsub('%s+', ' ')
      local room = vim.v.echospace
      if vim.fn.strdisplaywidth(text) > room then
        text = vim.fn.strcharpart(text, 0, room - 1) .. '…'
      end
      vim.notify(text, vim.log.levels.ERROR)
    end)
  end
  last_error = message
  vim.schedule(mark.update)
  vim.schedule(status.announce)
end

local snoozing = assert(vim.uv.new_timer())
local MINUTE_MS = 60000

---Suggestions were switched off for so many minutes, or on again.
---@param minutes number
function M.snoozed(minutes)
  snoozing:stop()
  if minutes > 0 then
    local rest = math.ceil(minutes)
    snoozing:start(MINUTE_MS, MINUTE_MS, vim.schedule_wrap(function()
      rest = rest - 1
      if rest > 0 then
        return status.announce() -- the time that is left
      end
      snoozing:stop()
      M.rescope()
    end))
  end
  M.rescope()
end

---A switch was turned: look at all buffers again.
function M.rescope()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buf) then
      consider(buf)
    end
  end
  next_edit.clear()
  if own() then
    inline.leave()
    inline.refresh()
  end
end

---@param again boolean Whether it was started before.
function M.start(again)
  local group = vim.api.nvim_create_augroup('codespec', { clear = true })
  local function on(events, callback)
    vim.api.nvim_create_autocmd(events, { group = group, callback = callback })
  end
  on({ 'FileType', 'BufNewFile', 'BufReadPost', 'BufFilePost', 'BufWritePost' }, function(event)
    consider(event.buf)
  end)
  on('BufFilePre', function(event)
    client.detach(event.buf) -- by the name that the server knows
  end)
  on('BufEnter', function(event)
    consider(event.buf)
    focus()
  end)
  on({ 'CursorMoved', 'CursorMovedI' }, moved)
  on('VimLeavePre', client.leave)
  client.on_change = server_changed
  inline.on_thinking = status.announce
  inline.on_shown = next_edit.moved
  if own() then
    on({ 'TextChangedI', 'TextChangedP', 'CursorMovedI' }, function()
      inline.update()
    end)
    on('InsertEnter', function()
      -- The cursor takes its place only after this event.
      vim.schedule(inline.refresh)
      vim.schedule(focus)
    end)
    on({ 'InsertLeave', 'BufLeave', 'WinLeave' }, inline.leave)
    on('BufReadPost', function(event)
      -- The text is another one, of which no other event tells in Insert mode.
      vim.schedule(function()
        if event.buf == vim.api.nvim_get_current_buf() then
          inline.leave()
          inline.refresh()
        end
      end)
    end)
    on({ 'CursorMoved', 'ModeChanged' }, inline.look)
  end
  -- Behind the suggestions': whether one is shown decides if an edit is.
  if config.current.next_edits then
    on({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, next_edit.update)
    on({ 'CursorMoved', 'CursorMovedI' }, next_edit.moved)
    on('BufEnter', next_edit.entered)
  end
  if again then
    next_edit.clear()
    inline.leave()
    client.restart()
  end
  M.rescope()
end

return M
