package cli

import (
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/slurm"
	"scrimp/internal/engine/ssh"
)

// kinds are the kinds of engines that this program has: here alone drivers are named.
var kinds = map[string]engine.Opener{local.Kind: local.Open, slurm.Kind: slurm.Open, ssh.Kind: ssh.Open,
	"kubernetes": openKubernetes, "aws": openAWS}
