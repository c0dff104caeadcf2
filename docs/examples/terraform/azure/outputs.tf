output "client_id" {
  value       = azurerm_user_assigned_identity.hook.client_id
  description = "For winboot manifests hook --identity."
}
