local M = {}

---What `setup` takes. Every field has a default.
---@class codespec.Config
---The server's command, such as `{ '/opt/codespec/bin/codespec', 'lsp' }`. By default the
---environment beside this plug-in, which `make env` makes; else `codespec` in $PATH; else where uv
---and pipx put programs.
---@field cmd? string[]
---Settings of the server, over those of its own file: `{ completion = { max_tokens = 32 } }`.
---@field settings? table<string, table<string, any>>
---Suggestions that nobody asked for: `'auto'`: shown; `'subtle'`: a sign says that one is ready, and
---`<Plug>(codespec-trigger)` shows it, until the next edit; `'manual'`: none. By default as in the
---server's own settings, as the next five.
---@field trigger? 'auto'|'subtle'|'manual'
---`'single'`: a suggestion ends with its line.
---@field lines? 'auto'|'single'
---`'medium'`, `'low'`: where nobody asked, only lines that are likely enough to be kept.
---@field eagerness? 'high'|'medium'|'low'
---Whether to suggest in comments, where nobody asked.
---@field in_comments? boolean
---Whether to suggest in strings, where nobody asked.
---@field in_strings? boolean
---Milliseconds without a key before the model begins, where nobody asked.
---@field idle_ms? integer
---Whether to show next edits: what follows from your last changes, here and in other files.
---@field next_edits? boolean
---Whether to suggest where nobody asked: |codespec-commands| toggle it later.
---@field enabled? boolean
---By filetype; `['*']` stands for those not named. Merged with the defaults.
---@field filetypes? table<string, boolean>
---Names of files and folders that mark a workspace, whose text is indexed to draft from.
---@field root_markers? string[]
---Milliseconds without a key before the server is asked.
---@field debounce_ms? integer
---Who draws: `'own'`, this plug-in; `'builtin'`, |vim.lsp.inline_completion| (Neovim 0.12 or newer;
---it waits 200 ms after a key); `'none'`: nobody, suggestions are in the menu of blink.cmp or nvim-cmp,
---see |codespec-menu|.
---@field ghost_text? 'own'|'builtin'|'none'
M.defaults = {
  cmd = nil,
  settings = {},
  next_edits = true,
  enabled = true,
  filetypes = { ['*'] = true, gitcommit = false, gitrebase = false, help = false },
  root_markers = { '.git', '.hg', '.jj', 'pyproject.toml', 'package.json', 'Cargo.toml', 'go.mod' },
  debounce_ms = 15,
  ghost_text = 'own',
}

---Options that are settings of the server's section `completion`.
local completion = { 'trigger', 'lines', 'eagerness', 'in_comments', 'in_strings', 'idle_ms' }

local types = {
  trigger = 'string',
  lines = 'string',
  eagerness = 'string',
  in_comments = 'boolean',
  in_strings = 'boolean',
  idle_ms = 'number',
  cmd = 'table',
  settings = 'table',
  next_edits = 'boolean',
  enabled = 'boolean',
  filetypes = 'table',
  root_markers = 'table',
  debounce_ms = 'number',
  ghost_text = 'string',
}

---@type codespec.Config
M.current = vim.deepcopy(M.defaults)

---Check `options` and put them over the defaults. Raises an error that says what is wrong.
---@param options codespec.Config
---@return codespec.Config
function M.merge(options)
  for name, value in pairs(options) do
    local expected = types[name]
    if not expected then
      local known = vim.tbl_keys(types)
      table.sort(known)
      local near = vim.fn.matchfuzzy(known, tostring(name))[1]
      local hint = near and ('Did you mean "%s"?'):format(near)
        or ('Known: %s.'):format(table.concat(known, ', '))
      error(('codespec: unknown option "%s". %s'):format(name, hint), 0)
    end
    if type(value) ~= expected then
      error(('codespec: option "%s" is a %s; give a %s.'):format(name, type(value), expected), 0)
    end
  end
  if options.cmd and not vim.islist(options.cmd) or options.cmd and #options.cmd == 0 then
    error("codespec: option \"cmd\" is a list such as { 'codespec', 'lsp' }.", 0)
  end
  if not vim.list_contains({ 'own', 'builtin', 'none' }, options.ghost_text or 'own') then
    error("codespec: option \"ghost_text\" is 'own', 'builtin' or 'none'.", 0)
  end
  local merged = vim.tbl_extend('force', M.defaults, options)
  merged.filetypes = vim.tbl_extend('force', M.defaults.filetypes, options.filetypes or {})
  if merged.ghost_text == 'builtin' and not vim.lsp.inline_completion then
    vim.notify('codespec: ghost_text = "builtin" needs Neovim 0.12; using "own".', vim.log.levels.WARN)
    merged.ghost_text = 'own'
  end
  return merged
end

---The settings of the server, by section; only what is set.
---@return table<string, table<string, any>>
function M.settings()
  local found = vim.deepcopy(M.current.settings)
  for _, name in ipairs(completion) do
    if M.current[name] ~= nil and type(found.completion or {}) == 'table' then
      found.completion = found.completion or {}
      found.completion[name] = M.current[name]
    end
  end
  return found
end

---The command of the server with an absolute program, or nil and why there is none.
---@return string[]? cmd
---@return string? why
function M.command()
  local programs = require('codespec.program')
  local cmd = M.current.cmd
  if cmd then
    local program = programs.find(vim.fn.expand(cmd[1]))
    if not program then
      return nil, ('the program %s of option "cmd" does not exist'):format(cmd[1])
    end
    return vim.list_extend({ program }, cmd, 2)
  end
  local here = debug.getinfo(1, 'S').source:sub(2)
  local checkout = vim.fn.fnamemodify(vim.uv.fs_realpath(here) or here, ':h:h:h:h:h')
  local folder = vim.fn.has('win32') == 1 and '/.venv/Scripts/' or '/.venv/bin/'
  local program = programs.find(checkout .. folder .. 'codespec')
    or programs.find('codespec')
    or programs.find_tool('codespec')
  if program then
    return { program, 'lsp' }
  end
  return nil,
    'codespec is not installed: run `make env` in its checkout, or `uv tool install` its archive, '
      .. 'or give setup() the option "cmd"'
end

return M
