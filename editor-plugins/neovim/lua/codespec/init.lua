---Code completion by a model on this machine: the functions for mappings and scripts. They may be
---called before |codespec.setup()|, without effect.
local config = require('codespec.config')

local M = {}

local ready = false

---What draws: `inline`, or `builtin` where the user prefers Neovim's own.
local function drawer()
  return require(config.current.ghost_text == 'builtin' and 'codespec.builtin' or 'codespec.inline')
end

---Start with these options. Calling it again takes other options and starts the server anew.
---@param options? codespec.Config
function M.setup(options)
  config.current = config.merge(options or {})
  vim.api.nvim_set_hl(0, 'CodespecGhostText', {
    default = true,
    link = vim.fn.hlexists('ComplHint') == 1 and 'ComplHint' or 'Comment',
  })
  vim.api.nvim_set_hl(0, 'CodespecReady', { default = true, link = 'CodespecGhostText' })
  for name, other in pairs({ New = 'DiffAdd', Hint = 'Comment', Sign = 'Comment' }) do
    vim.api.nvim_set_hl(0, 'CodespecEdit' .. name, { default = true, link = other })
  end
  local struck = vim.api.nvim_get_hl(0, { name = 'DiffDelete', link = false })
  struck.strikethrough, struck.default = true, true
  vim.api.nvim_set_hl(0, 'CodespecEditOld', struck)
  require('codespec.events').start(ready)
  ready = true
end

---Whether |codespec.setup()| was called.
---@return boolean
function M.is_set_up()
  return ready
end

---Insert the suggestion. False if there is none.
---@return boolean
function M.accept()
  return ready and drawer().accept()
end

---Insert the suggestion up to the end of its next word.
---@return boolean
function M.accept_word()
  return ready and drawer().accept(require('codespec.suggestion').word_length)
end

---Insert the suggestion up to the end of its next line.
---@return boolean
function M.accept_line()
  return ready and drawer().accept(require('codespec.suggestion').line_length)
end

---For a mapping with `expr = true`: the keys that insert the suggestion, or `key` if there is none.
---In a snippet of Neovim's own, <Tab> then goes to its next place, as without a mapping.
---@param key string
---@return string
function M.accept_or(key)
  if ready and config.current.ghost_text == 'builtin' then
    if M.accept() then
      return ''
    end
  elseif M.text() then
    return '<Cmd>lua require("codespec").accept()<CR>'
  end
  local is_snippet = key:lower() == '<tab>' and vim.snippet.active({ direction = 1 })
  return is_snippet and '<Cmd>lua vim.snippet.jump(1)<CR>' or key
end

---@param step integer
---@return boolean
local function cycle(step)
  return ready and config.current.ghost_text ~= 'none' and drawer().cycle(step)
end

---Show the next of several suggestions; they are asked for the first time.
---@return boolean
function M.next()
  return cycle(1)
end

---Show the one before.
---@return boolean
function M.previous()
  return cycle(-1)
end

---Hide the suggestion until the text changes. False if there is none.
---@return boolean
function M.dismiss()
  return ready and drawer().dismiss()
end

---Go to the next edit; where the cursor is at it already, make it. False if there is none.
---@return boolean
function M.next_edit()
  return ready and require('codespec.next_edit').go()
end

---For a mapping with `expr = true`: the keys for |codespec.next_edit()|, or `key` if there is none, or
---if a menu or a snippet is open.
---@param key string
---@return string
function M.next_edit_or(key)
  local is_busy = vim.fn.pumvisible() == 1 or vim.snippet.active({ direction = 1 })
  if not ready or is_busy or not require('codespec.next_edit').has() then
    return key
  end
  return '<Cmd>lua require("codespec").next_edit()<CR>'
end

---Hide the next edit, which does not come again at this place. False if there is none.
---@return boolean
function M.dismiss_edit()
  return ready and require('codespec.next_edit').dismiss()
end

---List all places that are likely to want an edit, in the quickfix window.
function M.list_edits()
  if ready then
    require('codespec.next_edit').list()
  end
end

---Ask for a suggestion here, also where suggestions are switched off. (Not with `ghost_text =
---'builtin'`.)
function M.trigger()
  if ready and config.current.ghost_text == 'own' then
    require('codespec.inline').trigger()
  end
end

---What |codespec.accept()| would insert; nil if nothing is shown. (Not with `ghost_text =
---'builtin'`.)
---@return string?
function M.text()
  return ready and require('codespec.inline').text() or nil
end

---Switch suggestions on or off: for the current buffer, its filetype or everywhere; `on = nil` the
---other way round. Returns what holds now.
---@param where? 'buffer'|'filetype'|'global' The buffer by default.
---@param on? boolean
---@return boolean
function M.toggle(where, on)
  if not ready then
    return false
  end
  local buf = vim.api.nvim_get_current_buf()
  local now = require('codespec.scope').set(where or 'buffer', on, buf)
  require('codespec.events').rescope()
  return now
end

---No suggestions for so many minutes, in all buffers, but where |codespec.trigger()| asks; 0: they
---come again.
---@param minutes number
function M.snooze(minutes)
  if ready then
    require('codespec.scope').snooze(minutes)
    require('codespec.events').snoozed(minutes)
  end
end

---The state of the current buffer: its `kind`, which is ready, thinking, starting, paused, off or
---error, and a `message`.
---@return codespec.Status
function M.status()
  if not ready then
    return { kind = 'off', message = 'setup() was not called' }
  end
  return require('codespec.status').of(vim.api.nvim_get_current_buf())
end

---The state in a word or two, for 'statusline': `%{v:lua.require'codespec'.statusline()}`. The event
---`User CodespecStatus` tells when it changes.
---@return string
function M.statusline()
  return ready and require('codespec.status').statusline() or ''
end

---End the server and start it again.
function M.restart()
  if ready then
    require('codespec.client').restart()
  end
end

return M
