variable "region" {
  type = string
}

variable "cluster" {
  type        = string
  description = "The NAME of the tag kubernetes.io/cluster/NAME."
}

variable "image_id" {
  type        = string
  description = "A Windows Server 2019, 2022 or 2025 AMI; its release is `os` in the inventory."
}

variable "instance_type" {
  type    = string
  default = "m6i.large"
}

variable "key_name" {
  type        = string
  description = "An RSA key pair: EC2 encrypts the first password with it."
}

variable "security_group_ids" {
  type        = list(string)
  description = "They let the controller in on 5985, and the control plane on 10250."
}

variable "subnet_ids" {
  type = list(string)
}

variable "controller_cidr" {
  type        = string
  description = "Where winboot runs: only from there WinRM is reached."
}

variable "max_size" {
  type    = number
  default = 10
}

variable "policy_file" {
  type        = string
  default     = ""
  description = "What `winboot cloud policy aws` printed; empty makes no policy."
}
