# A Uniform scale set of Windows nodes for winboot. `winboot hook serve -i pool.azure.yaml` joins what it starts, and drains
# what it ends while the terminate notice lasts.
#
# Nobody of the project has applied this to a subscription (docs/clouds-azure.md).

terraform {
  required_version = ">= 1.5"
  required_providers {
    azurerm = {
      source = "hashicorp/azurerm"
      # 4.65 has renamed azurerm_federated_identity_credential's parent_id to user_assigned_identity_id.
      version = ">= 4.65, < 6.0"
    }
  }
}

provider "azurerm" {
  subscription_id = var.subscription_id
  features {}
}

resource "azurerm_windows_virtual_machine_scale_set" "windows" {
  name                = var.name
  resource_group_name = var.resource_group
  location            = var.location
  sku                 = var.size
  instances           = 0
  admin_username      = var.admin_username
  admin_password      = var.admin_password
  # Azure adds six characters, and Windows takes fifteen.
  computer_name_prefix = var.computer_name_prefix
  tags                 = { "kubernetes.io-cluster" = var.cluster }

  # Machines that Azure starts in excess and deletes again would be joined for nothing.
  overprovision = false
  # One placement group: up to 100 machines.
  single_placement_group = true
  # winboot changes machines in its own waves. Rolling would need a health probe or the health extension, and reimages.
  upgrade_mode = "Manual"

  source_image_reference {
    publisher = "MicrosoftWindowsServer"
    offer     = "WindowsServer"
    sku       = "2022-datacenter-core-g2"
    version   = "latest"
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "Premium_LRS"
  }

  network_interface {
    name    = "nic"
    primary = true

    ip_configuration {
      name      = "internal"
      primary   = true
      subnet_id = var.subnet_id
    }
  }

  # NTLM seals the messages; the subnet's security group lets only the controller in.
  winrm_listener {
    protocol = "Http"
  }

  # The notice in which a machine is drained: 5 to 15 minutes.
  termination_notification {
    enabled = true
    timeout = "PT15M"
  }

  # Automatic repairs need a health probe or this extension; a probe goes with Automatic and Rolling upgrades alone.
  # A machine is well while its kubelet listens.
  extension {
    name                       = "health"
    publisher                  = "Microsoft.ManagedServices"
    type                       = "ApplicationHealthWindows"
    type_handler_version       = "1.0"
    auto_upgrade_minor_version = true
    settings                   = jsonencode({ protocol = "tcp", port = 10250 })
  }

  # Longer than the longest join (--join-timeout, 40 minutes): else Azure replaces machines that are being joined.
  automatic_instance_repair {
    enabled      = true
    grace_period = "PT60M"
    action       = "Replace"
  }

  lifecycle {
    # An autoscaler's to say.
    ignore_changes = [instances]
  }
}

# What the hook may do: winboot cloud policy azure --scope <resource group> > role.json, and
# az role definition create --role-definition @role.json. Its identity is federated with the ServiceAccount winboot-hook.

resource "azurerm_user_assigned_identity" "hook" {
  name                = "${var.name}-winboot"
  resource_group_name = var.resource_group
  location            = var.location
}

resource "azurerm_federated_identity_credential" "hook" {
  name                      = "winboot-hook"
  user_assigned_identity_id = azurerm_user_assigned_identity.hook.id
  audience                  = ["api://AzureADTokenExchange"]
  issuer                    = var.oidc_issuer
  subject                   = "system:serviceaccount:winboot-system:winboot-hook"
}

resource "azurerm_role_assignment" "hook" {
  scope                = var.role_scope
  role_definition_name = "winboot controller"
  principal_id         = azurerm_user_assigned_identity.hook.principal_id
}
