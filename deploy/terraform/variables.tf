variable "installation" {
  description = "Name of the engine in engines.yaml: the value of the tag scrimp-engine, and what names begin with. Lower-case letters, digits and hyphens."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,23}$", var.installation))
    error_message = "installation is 2 to 24 lower-case letters, digits and hyphens, and begins with a letter: team-a."
  }
}

variable "bucket" {
  description = "Name of the S3 bucket for checkpoints, which is made."
  type        = string
}

variable "bills_bucket" {
  description = "Name of the bucket to which AWS exports bills, which the server may then read; empty: none."
  type        = string
  default     = ""
}

variable "bills_prefix" {
  description = "Prefix of the export in that bucket, without slashes at its ends."
  type        = string
  default     = ""
}

variable "cidr" {
  description = "Addresses of the network; each zone gets a 16th of them."
  type        = string
  default     = "10.77.0.0/16"
}

variable "zones" {
  description = "In how many zones of the region machines may be rented, 1 to 6: more zones are more spot markets."
  type        = number
  default     = 3

  validation {
    condition     = var.zones >= 1 && var.zones <= 6
    error_message = "zones is 1 to 6."
  }
}

variable "machine_image" {
  description = "SSM parameter that holds the image of the machines; the default has NVIDIA's driver."
  type        = string
  default     = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
}

variable "machine_disk" {
  description = "Size of a machine's disk in GiB."
  type        = number
  default     = 200
}

variable "server" {
  description = "Whether to run the server on an instance. Without one, give the server's role to a machine of yours."
  type        = bool
  default     = false
}

variable "server_type" {
  description = "Instance type of the server, of the processor that server_image is for."
  type        = string
  default     = "t3.small"
}

variable "server_image" {
  description = "SSM parameter that holds the image of the server."
  type        = string
  default     = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
}

variable "scrimp_url" {
  description = "Address over https of the program scrimp for Linux on the server's processor; asked for with server = true."
  type        = string
  default     = ""
}

variable "scrimp_sha256" {
  description = "SHA-256 of that program in hexadecimal: another one is not run."
  type        = string
  default     = ""
}
