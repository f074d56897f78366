"""Workspaces that clients send to a server of many: one tenant's text drafts for no other tenant.

A gate (`tenant_gate`) stands before the engine's HTTP API. It tells tenants by their keys
(`tenant_keys`), writes what the engine is told of a tenant itself (`request_fields`), and takes
workspaces (`workspace_routes`), whose ids are checked (`content_check`) before they are kept, by
tenant, in files of their own (`tenant_store`). No engine is imported here.
"""
