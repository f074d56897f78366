if vim.g.loaded_codespec then
  return
end
vim.g.loaded_codespec = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('codespec needs Neovim 0.10 or newer', vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command('Codespec', function(event)
  require('codespec.command').run(event)
end, {
  nargs = '*',
  desc = 'Code completion by a model on this machine',
  complete = function(lead, line)
    return require('codespec.command').complete(lead, line)
  end,
})

for lhs, name in pairs({
  ['accept'] = 'accept',
  ['accept-word'] = 'accept_word',
  ['accept-line'] = 'accept_line',
  ['next'] = 'next',
  ['previous'] = 'previous',
  ['dismiss'] = 'dismiss',
  ['trigger'] = 'trigger',
}) do
  local rhs = ('<Cmd>lua require("codespec").%s()<CR>'):format(name)
  vim.keymap.set('i', ('<Plug>(codespec-%s)'):format(lhs), rhs, { desc = 'codespec: ' .. lhs })
end

for lhs, name in pairs({ ['next-edit'] = 'next_edit', ['dismiss-edit'] = 'dismiss_edit' }) do
  local rhs = ('<Cmd>lua require("codespec").%s()<CR>'):format(name)
  vim.keymap.set({ 'n', 'i' }, ('<Plug>(codespec-%s)'):format(lhs), rhs, { desc = 'codespec: ' .. lhs })
end
