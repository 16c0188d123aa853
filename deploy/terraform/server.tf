data "aws_ssm_parameter" "machine_image" {
  name = var.machine_image
}

data "aws_ssm_parameter" "server_image" {
  name = var.server_image
}

# What the machines of jobs are made from. They have no role: what a job may do comes from the server.
resource "aws_launch_template" "machines" {
  name                   = "${var.installation}-scrimp-machines"
  image_id               = data.aws_ssm_parameter.machine_image.value
  update_default_version = true
  tags                   = local.tags

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  network_interfaces {
    device_index                = 0
    associate_public_ip_address = true
    security_groups             = [aws_security_group.machines.id]
  }

  block_device_mappings {
    device_name = "/dev/sda1"

    ebs {
      volume_size           = var.machine_disk
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = local.tags
  }

  tag_specifications {
    resource_type = "volume"
    tags          = local.tags
  }
}

# It does not carry the installation's tag: what does is a machine, which the server gives back.
resource "aws_instance" "server" {
  count = var.server ? 1 : 0

  ami                         = data.aws_ssm_parameter.server_image.value
  instance_type               = var.server_type
  subnet_id                   = aws_subnet.zone[0].id
  vpc_security_group_ids      = [aws_security_group.server.id]
  iam_instance_profile        = aws_iam_instance_profile.server.name
  associate_public_ip_address = true
  tags                        = { "Name" = "${var.installation}-scrimp-server" }

  user_data = templatefile("${path.module}/server.sh.tftpl", {
    scrimp_url    = var.scrimp_url
    scrimp_sha256 = var.scrimp_sha256
  })

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_size           = 50
    volume_type           = "gp3"
    encrypted             = true
    delete_on_termination = false
  }

  lifecycle {
    ignore_changes = [ami]

    precondition {
      condition     = startswith(var.scrimp_url, "https://") && can(regex("^[0-9a-f]{64}$", var.scrimp_sha256))
      error_message = "server = true asks for scrimp_url (https://...) and scrimp_sha256 (64 hexadecimal digits)."
    }
  }
}
