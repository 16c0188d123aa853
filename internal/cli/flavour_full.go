//go:build !local

package cli

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws"
	"scrimp/internal/engine/kube"
)

// flavour says what this build can reach.
const flavour = "full build: checkpoints go to folders, S3, Google Cloud Storage and Azure Blob, " +
	"machines may be AWS' and Kubernetes' pods"

// openKubernetes opens an engine of that kind.
var openKubernetes engine.Opener = kube.Open

// openAWS opens an engine of that kind.
var openAWS engine.Opener = aws.Open
