//go:build !local

package engines

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws"
	"scrimp/internal/engine/kube"
)

// flavour describes the stores and engines of this build.
const flavour = "full build: checkpoints go to folders, S3, Google Cloud Storage and Azure Blob, " +
	"machines may be AWS' and Kubernetes' pods"

// openKubernetes opens a Kubernetes engine.
var openKubernetes engine.Opener = kube.Open

// openAWS opens an AWS engine.
var openAWS engine.Opener = aws.Open
