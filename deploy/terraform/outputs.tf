output "installation" {
  description = "Value of the tag scrimp-engine."
  value       = var.installation
}

output "bucket" {
  description = "Bucket of the checkpoints, as checkpoint.store takes it."
  value       = "s3://${aws_s3_bucket.checkpoints.id}?region=${data.aws_region.here.name}"
}

output "subnets" {
  description = "Subnets in which machines are rented, one a zone."
  value       = aws_subnet.zone[*].id
}

output "security_group" {
  description = "Security group of the machines."
  value       = aws_security_group.machines.id
}

output "launch_template" {
  description = "Launch template of the machines."
  value       = aws_launch_template.machines.id
}

output "server_role" {
  description = "Role of the server."
  value       = aws_iam_role.server.arn
}

output "job_role" {
  description = "Role from which the server issues the credentials of one job."
  value       = aws_iam_role.job.arn
}

output "server" {
  description = "Instance of the server; empty without one. aws ssm start-session reaches it."
  value       = one(aws_instance.server[*].id)
}
