package engines

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/slurm"
	"scrimp/internal/engine/ssh"
)

// Kinds maps the engine Kinds of this program to their drivers. The files flavour_*.go open those with a large SDK.
var Kinds = map[string]engine.Opener{local.Kind: local.Open, slurm.Kind: slurm.Open, ssh.Kind: ssh.Open,
	"kubernetes": openKubernetes, "aws": openAWS}
