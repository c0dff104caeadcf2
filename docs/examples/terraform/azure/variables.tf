variable "subscription_id" {
  type = string
}

variable "cluster" {
  type = string
}

variable "name" {
  type    = string
  default = "windows"
}

variable "computer_name_prefix" {
  type    = string
  default = "win"

  validation {
    condition     = length(var.computer_name_prefix) <= 9
    error_message = "At most 9 characters: Azure adds six, and Windows takes fifteen."
  }
}

variable "resource_group" {
  type = string
}

variable "location" {
  type = string
}

variable "size" {
  type    = string
  default = "Standard_D4s_v5"
}

variable "subnet_id" {
  type = string
}

variable "admin_username" {
  type    = string
  default = "winboot"
}

variable "admin_password" {
  type      = string
  sensitive = true
}

variable "oidc_issuer" {
  type        = string
  description = "The issuer URL of the cluster's service accounts."
}

variable "role_scope" {
  type        = string
  description = "The subscription: its lists of machines are asked for as a whole."
}
