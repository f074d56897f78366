---What changed between Neovim 0.10 and 0.12, and the units of columns.
local M = {}

local is_011 = vim.fn.has('nvim-0.11') == 1

---@param client vim.lsp.Client
---@param method string
function M.request(client, method, params, handler, buf)
  if is_011 then
    return client:request(method, params, handler, buf)
  end
  return client.request(method, params, handler, buf)
end

---@param client vim.lsp.Client
---@param method string
function M.notify(client, method, params)
  if is_011 then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

---@param client vim.lsp.Client
---@param id integer
function M.cancel(client, id)
  if is_011 then
    return client:cancel_request(id)
  end
  return client.cancel_request(id)
end

---@param client vim.lsp.Client
function M.stop(client)
  if is_011 then
    client:stop()
  else
    client.stop()
  end
end

---Column in bytes of a column in the units of the server; the end of the line if beyond it.
---@param line string
---@param character integer
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return integer
function M.to_byte(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  elseif is_011 then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local ok, byte = pcall(vim.str_byteindex, line, character, encoding == 'utf-16')
  return ok and byte or #line
end

---Bytes after the cursor that an item of inline completion replaces.
---@param item table
---@param after string The cursor's line after the cursor.
---@param encoding 'utf-8'|'utf-16'|'utf-32'
---@return integer
function M.n_replaced(item, after, encoding)
  local range = item.range
  local units = range and range['end'].character - range.start.character or 0
  return units > 0 and M.to_byte(after, units, encoding) or 0
end

---Length of `text` in units of UTF-16.
---@param text string
---@return integer
function M.utf16_length(text)
  if is_011 then
    return vim.str_utfindex(text, 'utf-16')
  end
  return (select(2, vim.str_utfindex(text)))
end

return M
