terraform {
  backend "http" {
    address        = "http://127.0.0.1:7880/terraform/prod/network"
    lock_address   = "http://127.0.0.1:7880/terraform/prod/network"
    unlock_address = "http://127.0.0.1:7880/terraform/prod/network"
  }
}

variable "slowly" {
  default = 0
}

# Something that needs no provider and so no network.
resource "terraform_data" "network" {
  input            = "10.0.0.0/16"
  triggers_replace = var.slowly

  provisioner "local-exec" {
    command = "touch begun; sleep ${var.slowly}"
  }
}
