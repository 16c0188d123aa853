data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

data "aws_region" "here" {}

# The policies are those of internal/engine/aws/policy, statement by statement; go test ./deploy compares them.
locals {
  tags = {
    "Name"          = "${var.installation}-scrimp"
    "scrimp-engine" = var.installation
  }

  server_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid    = "Look"
        Effect = "Allow"
        Action = [
          "ec2:DescribeAvailabilityZones",
          "ec2:DescribeCapacityReservations",
          "ec2:DescribeFleetInstances",
          "ec2:DescribeFleets",
          "ec2:DescribeImages",
          "ec2:DescribeInstanceStatus",
          "ec2:DescribeInstanceTypeOfferings",
          "ec2:DescribeInstanceTypes",
          "ec2:DescribeInstances",
          "ec2:DescribeLaunchTemplateVersions",
          "ec2:DescribeLaunchTemplates",
          "ec2:DescribeNetworkInterfaces",
          "ec2:DescribePlacementGroups",
          "ec2:DescribeRegions",
          "ec2:DescribeReservedInstances",
          "ec2:DescribeSecurityGroups",
          "ec2:DescribeSpotInstanceRequests",
          "ec2:DescribeSpotPriceHistory",
          "ec2:DescribeSubnets",
          "ec2:DescribeTags",
          "ec2:DescribeVolumes",
          "ec2:GetSpotPlacementScores",
        ]
        Resource = ["*"]
      },
      {
        Sid    = "Prices"
        Effect = "Allow"
        Action = [
          "pricing:DescribeServices",
          "pricing:GetProducts",
          "savingsplans:DescribeSavingsPlanRates",
          "savingsplans:DescribeSavingsPlans",
          "savingsplans:DescribeSavingsPlansOfferingRates",
          "servicequotas:GetServiceQuota",
        ]
        Resource = ["*"]
      },
      {
        Sid      = "Template"
        Effect   = "Allow"
        Action   = ["ec2:CreateLaunchTemplate"]
        Resource = ["arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:launch-template/*"]
        Condition = {
          StringEquals = {
            "aws:RequestTag/scrimp-engine" = ["${var.installation}"]
          }
        }
      },
      {
        Sid    = "Group"
        Effect = "Allow"
        Action = [
          "ec2:CreatePlacementGroup",
          "ec2:CreateSecurityGroup",
        ]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:placement-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:security-group/*",
        ]
        Condition = {
          StringEquals = {
            "aws:RequestTag/scrimp-engine" = ["${var.installation}"]
          }
        }
      },
      {
        Sid    = "GroupIn"
        Effect = "Allow"
        Action = [
          "ec2:CreateSecurityGroup",
        ]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:vpc/*",
        ]
      },
      {
        Sid    = "Rent"
        Effect = "Allow"
        Action = [
          "ec2:CreateFleet",
          "ec2:RunInstances",
        ]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:fleet/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:instance/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:volume/*",
        ]
        Condition = {
          StringEquals = {
            "aws:RequestTag/scrimp-engine" = ["${var.installation}"]
          }
        }
      },
      {
        Sid    = "RentFrom"
        Effect = "Allow"
        Action = [
          "ec2:CreateFleet",
          "ec2:RunInstances",
        ]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:capacity-reservation/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:network-interface/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:placement-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:security-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:subnet/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}::image/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}::snapshot/*",
        ]
      },
      {
        Sid    = "RentByTemplate"
        Effect = "Allow"
        Action = [
          "ec2:CreateFleet",
          "ec2:RunInstances",
        ]
        Resource = ["arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:launch-template/*"]
        Condition = {
          StringEquals = {
            "aws:ResourceTag/scrimp-engine" = ["${var.installation}"]
          }
        }
      },
      {
        Sid    = "TagWhatIsMade"
        Effect = "Allow"
        Action = ["ec2:CreateTags"]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:fleet/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:instance/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:launch-template/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:network-interface/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:placement-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:security-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:volume/*",
        ]
        Condition = {
          StringEquals = {
            "aws:RequestTag/scrimp-engine" = ["${var.installation}"]
            "ec2:CreateAction"             = ["CreateFleet", "CreateLaunchTemplate", "CreatePlacementGroup", "CreateSecurityGroup", "CreateVolume", "RunInstances"]
          }
        }
      },
      {
        Sid    = "GiveBack"
        Effect = "Allow"
        Action = [
          "ec2:AuthorizeSecurityGroupIngress",
          "ec2:DeleteFleets",
          "ec2:DeleteLaunchTemplate",
          "ec2:DeleteNetworkInterface",
          "ec2:DeletePlacementGroup",
          "ec2:DeleteVolume",
          "ec2:TerminateInstances",
        ]
        Resource = [
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:fleet/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:instance/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:launch-template/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:network-interface/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:placement-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:security-group/*",
          "arn:${data.aws_partition.here.partition}:ec2:${data.aws_region.here.name}:${data.aws_caller_identity.here.account_id}:volume/*",
        ]
        Condition = {
          StringEquals = {
            "aws:ResourceTag/scrimp-engine" = ["${var.installation}"]
          }
        }
      },
      {
        Sid    = "ListCheckpoints"
        Effect = "Allow"
        Action = [
          "s3:GetBucketLocation",
          "s3:ListBucket",
          "s3:ListBucketMultipartUploads",
        ]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bucket}"]
      },
      {
        Sid    = "KeepCheckpoints"
        Effect = "Allow"
        Action = [
          "s3:AbortMultipartUpload",
          "s3:DeleteObject",
          "s3:GetObject",
          "s3:ListMultipartUploadParts",
          "s3:PutObject",
        ]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bucket}/*"]
      },
      {
        Sid      = "JobCredentials"
        Effect   = "Allow"
        Action   = ["sts:AssumeRole"]
        Resource = ["arn:${data.aws_partition.here.partition}:iam::${data.aws_caller_identity.here.account_id}:role/${var.installation}-scrimp-job"]
      },
    ]
  }

  job_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "ListCheckpoints"
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bucket}"]
      },
      {
        Sid    = "KeepCheckpoints"
        Effect = "Allow"
        Action = [
          "s3:AbortMultipartUpload",
          "s3:DeleteObject",
          "s3:GetObject",
          "s3:ListMultipartUploadParts",
          "s3:PutObject",
        ]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bucket}/*"]
      },
    ]
  }

  trust = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Machines"
        Effect    = "Allow"
        Action    = ["sts:AssumeRole"]
        Principal = { Service = ["ec2.amazonaws.com"] }
      },
    ]
  }

  job_trust = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Server"
        Effect    = "Allow"
        Action    = ["sts:AssumeRole"]
        Principal = { AWS = [aws_iam_role.server.arn] }
      },
    ]
  }

  # What bills: of engines.yaml names.
  bills_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "ListBills"
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bills_bucket}"]
        Condition = {
          StringLike = {
            "s3:prefix" = ["${var.bills_prefix}/*"]
          }
        }
      },
      {
        Sid      = "ReadBills"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = ["arn:${data.aws_partition.here.partition}:s3:::${var.bills_bucket}/${var.bills_prefix}/*"]
      },
    ]
  }

  # Nothing reads or writes checkpoints without TLS.
  bucket_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "OverTLS"
        Effect    = "Deny"
        Principal = { AWS = ["*"] }
        Action    = ["s3:*"]
        Resource = [
          "arn:${data.aws_partition.here.partition}:s3:::${var.bucket}",
          "arn:${data.aws_partition.here.partition}:s3:::${var.bucket}/*",
        ]
        Condition = { Bool = { "aws:SecureTransport" = ["false"] } }
      },
    ]
  }
}

resource "aws_iam_role" "server" {
  name               = "${var.installation}-scrimp-server"
  assume_role_policy = jsonencode(local.trust)
  tags               = local.tags
}

resource "aws_iam_role_policy" "server" {
  name   = "scrimp"
  role   = aws_iam_role.server.id
  policy = jsonencode(local.server_policy)
}

resource "aws_iam_role_policy" "bills" {
  count  = var.bills_bucket == "" ? 0 : 1
  name   = "bills"
  role   = aws_iam_role.server.id
  policy = jsonencode(local.bills_policy)

  lifecycle {
    precondition {
      condition     = var.bills_prefix != ""
      error_message = "bills_bucket asks for bills_prefix, the prefix of the export."
    }
  }
}

# Session Manager reaches the server, since nothing else does.
resource "aws_iam_role_policy_attachment" "session" {
  role       = aws_iam_role.server.name
  policy_arn = "arn:${data.aws_partition.here.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_instance_profile" "server" {
  name = "${var.installation}-scrimp-server"
  role = aws_iam_role.server.name
  tags = local.tags
}

# The server takes this role with a session policy that names one job's prefix; the job gets the credentials.
resource "aws_iam_role" "job" {
  name                 = "${var.installation}-scrimp-job"
  assume_role_policy   = jsonencode(local.job_trust)
  max_session_duration = 43200
  tags                 = local.tags
}

resource "aws_iam_role_policy" "job" {
  name   = "checkpoints"
  role   = aws_iam_role.job.id
  policy = jsonencode(local.job_policy)
}
