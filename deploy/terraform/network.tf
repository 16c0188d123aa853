# A network whose machines reach the internet and are not reached from it: public addresses without inbound rules
# cost nothing, a NAT gateway would take money for each gigabyte of data.

data "aws_availability_zones" "here" {
  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_support   = true
  enable_dns_hostnames = true
  tags                 = local.tags
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = local.tags
}

resource "aws_subnet" "zone" {
  count = var.zones

  vpc_id                  = aws_vpc.this.id
  availability_zone       = data.aws_availability_zones.here.names[count.index]
  cidr_block              = cidrsubnet(var.cidr, 4, count.index)
  map_public_ip_on_launch = true
  tags                    = local.tags
}

resource "aws_route_table" "this" {
  vpc_id = aws_vpc.this.id
  tags   = local.tags
}

resource "aws_route" "out" {
  route_table_id         = aws_route_table.this.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "zone" {
  count = var.zones

  subnet_id      = aws_subnet.zone[count.index].id
  route_table_id = aws_route_table.this.id
}

# Checkpoints go to the bucket without leaving AWS's network.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${data.aws_region.here.name}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.this.id]
  tags              = local.tags
}

resource "aws_security_group" "machines" {
  description = "Machines of scrimp: nothing comes in."
  vpc_id      = aws_vpc.this.id
  tags        = local.tags
}

resource "aws_vpc_security_group_egress_rule" "machines" {
  description       = "To the server, the object store and what jobs need."
  security_group_id = aws_security_group.machines.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}

resource "aws_security_group" "server" {
  description = "Server of scrimp: its machines come in, nobody else."
  vpc_id      = aws_vpc.this.id
  tags        = local.tags
}

resource "aws_vpc_security_group_ingress_rule" "server" {
  description                  = "Agents on the machines of this installation."
  security_group_id            = aws_security_group.server.id
  referenced_security_group_id = aws_security_group.machines.id
  ip_protocol                  = "tcp"
  from_port                    = 7077
  to_port                      = 7077
}

resource "aws_vpc_security_group_egress_rule" "server" {
  description       = "To AWS."
  security_group_id = aws_security_group.server.id
  ip_protocol       = "-1"
  cidr_ipv4         = "0.0.0.0/0"
}
