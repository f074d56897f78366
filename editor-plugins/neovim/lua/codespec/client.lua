---The one language server of this Neovim: started when the first buffer needs it, told of further
---workspaces, started again when it ends unexpectedly.
local compat = require('codespec.compat')
local config = require('codespec.config')
local ending = require('codespec.ending')
local sync = require('codespec.sync')

local M = {}

-- As many ends within as many milliseconds are not answered with another start.
local MAX_ENDS, ENDS_WITHIN_MS = 4, 180000
local ADVICE = 'see `:checkhealth codespec`, then `:Codespec restart`'

---@class codespec.ServerStatus The parameters of the server's `didChangeStatus`.
---@field busy boolean
---@field kind 'Normal'|'Warning'|'Error'|'Inactive'
---@field message string
---@field suggestion? boolean One is ready for whom asks.

---@type integer?
M.id = nil
---What the server said last.
---@type codespec.ServerStatus?
M.status = nil
---Why there is no server; nil while there is one.
---@type string?
M.failure = nil
---Whether a suggestion is ready for whom asks.
function M.has_ready()
  return M.status ~= nil and M.status.suggestion == true
end

---Called after each change of the three above.
M.on_change = function() end
---Called with the id of an item that was answered with, and what it is by now.
---@type fun(id: string, item: table)
M.on_grown = function() end

local buffers = {} ---@type table<integer, string> those attached, with the filetype told of
local roots = {} ---@type table<string, true>
local ends = {} ---@type integer[]
local stopping = false
local last_exit = ''
---The server's, of the last start: Neovim tells nobody.
---@type codespec.Process?
local process

---@return vim.lsp.Client? client nil before the server is ready to be asked
function M.get()
  local client = M.id and vim.lsp.get_client_by_id(M.id)
  if client and client.initialized and not client:is_stopped() then
    return client
  end
end

---The text of an item ends its lines as the document once did; buffers and extmarks want \n.
local function with_newlines(items)
  for _, item in ipairs(items) do
    if type(item.insertText) == 'table' then
      item.insertText = item.insertText.value
    end
    item.insertText = item.insertText:gsub('\r\n?', '\n')
  end
end

---@param uri string
---@return integer?
local function buffer_of(uri)
  for buf in pairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buf) and vim.uri_from_bufnr(buf) == uri then
      return buf
    end
  end
end

---@return integer[]
local function children()
  return vim.api.nvim_get_proc_children(vim.uv.os_getpid())
end

---@param cmd string[]
local function rpc(cmd)
  return function(dispatchers)
    local exited, started = dispatchers.on_exit, { ended = false }
    dispatchers = vim.tbl_extend('force', dispatchers, {
      on_exit = function(code, signal)
        started.ended = true
        last_exit = signal ~= 0 and 'signal ' .. signal or 'status ' .. code
        exited(0, 0) -- else Neovim stops the user with a message of two lines
      end,
    })
    local before = children()
    local connection = vim.lsp.rpc.start(cmd, dispatchers)
    started.pid = vim.iter(children()):find(function(pid)
      return not vim.list_contains(before, pid)
    end)
    process = started
    local request, notify, keep = connection.request, connection.notify, sync.keeper(buffer_of)
    connection.notify = function(method, params)
      keep(method, params)
      return notify(method, params)
    end
    connection.request = function(method, params, callback, notify_reply)
      if method ~= 'textDocument/inlineCompletion' then
        return request(method, params, callback, notify_reply)
      end
      return request(method, params, function(err, result)
        local items = type(result) == 'table' and (result.items or result)
        with_newlines(type(items) == 'table' and items or {})
        callback(err, result)
      end, notify_reply)
    end
    return connection
  end
end

local function changed()
  M.on_change()
end

local function on_exit(_, _, id)
  vim.schedule(function()
    if id ~= M.id then
      return
    end
    M.id, M.status = nil, nil
    if stopping then
      return changed()
    end
    local now = vim.uv.now()
    ends = vim.tbl_filter(function(at)
      return now - at < ENDS_WITHIN_MS
    end, ends)
    ends[#ends + 1] = now
    if #ends < MAX_ENDS then
      M.attach_all()
    else
      M.failure = ('the server ended %d times, last with %s; %s'):format(#ends, last_exit, ADVICE)
    end
    changed()
  end)
end

---@param root string?
local function folders(root)
  return root and { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } } or nil
end

---The settings as JSON has them, where an empty table would be a list.
local function options()
  local function object(values)
    return type(values) == 'table' and vim.tbl_extend('force', vim.empty_dict(), values) or values
  end
  return object(vim.tbl_map(object, config.settings()))
end

---@param buf integer
---@param root string?
local function start(buf, root)
  local cmd, why = config.command()
  if not cmd then
    M.failure = why
    return changed()
  end
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.textDocument.inlineCompletion = { dynamicRegistration = false }
  -- `vim.lsp.inline_completion` shows what it asked for, and no more of it.
  capabilities.experimental =
    { growingCompletion = config.current.ghost_text == 'own', inlineEdits = true }
  M.failure, stopping, roots = nil, false, root and { [root] = true } or {}
  M.id = vim.lsp.start({
    name = 'codespec',
    cmd = rpc(cmd),
    capabilities = capabilities,
    init_options = options(),
    root_dir = root,
    workspace_folders = folders(root),
    -- The server begins with a key, before it is asked; Neovim's own 150 ms would keep it from that.
    flags = { debounce_text_changes = 5 },
    on_exit = on_exit,
    on_init = function(client)
      if config.current.ghost_text ~= 'builtin' then
        -- Else `vim.lsp.inline_completion`, where the user has it on, would draw a second one.
        client.server_capabilities.inlineCompletionProvider = nil
      end
      changed()
    end,
    handlers = {
      didChangeStatus = function(_, status)
        M.status = status
        changed()
      end,
      ['textDocument/completionGrew'] = function(_, grown)
        with_newlines({ grown.item })
        M.on_grown(grown.id, grown.item)
      end,
    },
  }, {
    bufnr = buf,
    silent = true,
    reuse_client = function()
      return false
    end,
  })
  if not M.id then -- such as a script whose interpreter is gone
    M.failure = ('%s cannot be run; %s'):format(cmd[1], ADVICE)
  end
  changed()
end

---@param buf integer
---@return string? root Folder of the workspace that a buffer belongs to.
local function root_of(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  return name ~= '' and vim.fs.root(buf, config.current.root_markers) or nil
end

---Whether the server knows another buffer without a name: to it all of them are one document.
---@param buf integer
function M.knows_other_unnamed(buf)
  for other in pairs(buffers) do
    if other ~= buf and vim.api.nvim_buf_is_loaded(other) and vim.api.nvim_buf_get_name(other) == '' then
      return true
    end
  end
  return false
end

---Make the server know a buffer, and its language.
---@param buf integer
function M.attach(buf)
  local told = buffers[buf]
  buffers[buf] = vim.bo[buf].filetype
  if not told then
    vim.api.nvim_create_autocmd({ 'BufDelete', 'BufWipeout' }, {
      buffer = buf,
      once = true,
      callback = function()
        M.detach(buf) -- it may live on under its first name, see |:write|
      end,
    })
  end
  local root = root_of(buf)
  local client = M.id and vim.lsp.get_client_by_id(M.id)
  if not client then
    return M.failure == nil and start(buf, root)
  end
  if told and told ~= buffers[buf] and M.get() and vim.lsp.buf_is_attached(buf, M.id) then
    vim.lsp.buf_detach_client(buf, M.id) -- a language is told with a document that is opened
  end
  if not vim.lsp.buf_is_attached(buf, M.id) then
    vim.lsp.buf_attach_client(buf, M.id)
  end
  if root and not roots[root] then
    roots[root] = true
    local event = { added = folders(root), removed = {} }
    compat.notify(client, 'workspace/didChangeWorkspaceFolders', { event = event })
  end
end

function M.attach_all()
  for buf in pairs(buffers) do
    if vim.api.nvim_buf_is_loaded(buf) then
      M.attach(buf)
    end
  end
end

---@param buf integer
function M.detach(buf)
  if buffers[buf] and M.id and vim.lsp.buf_is_attached(buf, M.id) then
    vim.lsp.buf_detach_client(buf, M.id)
  end
  buffers[buf] = nil
end

---Neovim, which asks the server to end, ends or starts another one.
function M.leave()
  if process then
    ending.make_sure(process)
  end
end

---End the server and start it again with all its buffers.
function M.restart()
  ends, M.failure, stopping = {}, nil, true
  local client = M.id and vim.lsp.get_client_by_id(M.id)
  M.id, M.status = nil, nil -- its end is no news any more
  if client then
    compat.stop(client)
    M.leave()
  end
  M.attach_all()
  changed()
end

---Run the command that an item carries: all of it was accepted.
---@param item { command?: lsp.Command }
function M.accepted(item)
  local client = M.get()
  if client and item.command then
    local params = { command = item.command.command, arguments = item.command.arguments }
    compat.request(client, 'workspace/executeCommand', params, function() end)
  end
end

---Tell the server something, if there is one.
---@param method string
---@param params table
function M.notify(method, params)
  local client = M.get()
  if client then
    compat.notify(client, method, params)
  end
end

return M
