---Keeping the server's lines those of the buffer. Where a buffer is emptied or filled, Neovim's
---changes (0.10 to 0.12) take a line end too many, or leave one: then all of the text is sent. And a
---return within a line, which to the protocol ends it, is sent as a blank, with all of the text where
---it may have been the line's last.
local api = vim.api
local M = {}

---@param buf integer
local function n_lines(buf)
  return api.nvim_buf_line_count(buf) + (vim.bo[buf].eol and 1 or 0)
end

---@param buf integer
local function text_of(buf)
  local line_end = ({ dos = '\r\n', mac = '\r' })[vim.bo[buf].fileformat] or '\n'
  local lines = api.nvim_buf_get_lines(buf, 0, -1, true)
  return table.concat(lines, line_end) .. (vim.bo[buf].eol and line_end or '')
end

---@param buf integer
---@param text string
local function without_returns(buf, text)
  if vim.bo[buf].fileformat == 'mac' or not (text:find('\r[^\n]') or text:sub(-1) == '\r') then
    return text
  end
  return (text:gsub('(\r+)(\n?)', function(returns, line_end)
    return line_end == '' and (' '):rep(#returns) or (' '):rep(#returns - 1) .. '\r\n'
  end))
end

---What is to see each notification before it is sent to a server, and may change it.
---@param buffer_of fun(uri: string): integer? The buffer that a document is.
---@return fun(method: string, params: table)
function M.keeper(buffer_of)
  local known = {} ---@type table<string, { buf: integer, n_lines: integer }> documents, by URI
  return function(method, params)
    local uri = vim.tbl_get(params or {}, 'textDocument', 'uri')
    local document = known[uri]
    if method == 'textDocument/didOpen' then
      local buf = buffer_of(uri)
      if buf then
        known[uri] = { buf = buf, n_lines = n_lines(buf) }
        params.textDocument.text = without_returns(buf, params.textDocument.text)
      end
    elseif method == 'textDocument/didClose' then
      known[uri] = nil
    elseif method == 'textDocument/didChange' and document then
      local buf, changes, is_behind = document.buf, {}, false
      for i, change in ipairs(params.contentChanges) do
        local text, range = without_returns(buf, change.text), change.range
        local _, n_new = text:gsub('\r\n?', '\n'):gsub('\n', '')
        document.n_lines = document.n_lines + n_new - range['end'].line + range.start.line
        changes[i] = vim.tbl_extend('force', change, { text = text })
        -- Behind a return that was the line's last, which the server took for a part of its end.
        local line = api.nvim_buf_get_lines(buf, range.start.line, range.start.line + 1, false)[1]
        is_behind = is_behind or (line or ''):find('\r.') ~= nil
      end
      if is_behind or document.n_lines ~= n_lines(buf) then
        document.n_lines = n_lines(buf)
        changes = { { text = without_returns(buf, text_of(buf)) } }
      end
      params.contentChanges = changes -- those of Neovim are other servers', too
    end
  end
end

return M
