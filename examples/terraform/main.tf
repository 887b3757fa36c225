terraform {
  backend "http" {
    address        = "http://127.0.0.1:7880/terraform/prod/network"
    lock_address   = "http://127.0.0.1:7880/terraform/prod/network"
    unlock_address = "http://127.0.0.1:7880/terraform/prod/network"
  }
}

variable "release" {
  default = 1
}

# Something that needs no provider and so no network. It is made when the file 'ready' is there.
resource "terraform_data" "network" {
  input            = "10.0.0.0/16"
  triggers_replace = var.release

  provisioner "local-exec" {
    command = "touch begun; until [ -e ready ]; do sleep 0.1; done"
  }
}
