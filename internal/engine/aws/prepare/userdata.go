//go:build !local

package prepare

import (
	"encoding/base64"
	"strings"
)

// Paths of scrimp's files on a machine.
const (
	programFolder = "/opt/scrimp"
	machineFolder = "/var/lib/scrimp/machine"
	metadata      = "http://169.254.169.254"
)

// begin is what a machine runs at its start, as root. It downloads the agent's program, checks its hash, and runs it.
// If the agent ends or cannot start, the machine ends. The script contains no secret: a reader of a machine's user
// data learns only where the server is. The agent proves its identity with the identity document that AWS signs for
// the machine.
const begin = `#!/bin/sh
umask 022
mkdir -p ` + programFolder + ` ` + machineFolder + `
cd ` + programFolder + ` || exec shutdown -h now
cat >ca.crt <<'CERTIFICATES'
@CA@
CERTIFICATES
cat >run <<'RUN'
cd ` + programFolder + ` || exec shutdown -h now
trust=""
if grep -q BEGIN ca.crt; then trust="--cacert ca.crt"; export SCRIMP_CA=` + programFolder + `/ca.crt; fi
got=""
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	if curl -fsS $trust --connect-timeout 10 --max-time 300 -o scrimp '@SERVER@/v1/program/@BUILD@' &&
		sha256sum scrimp | grep -q '^@BUILD@'; then got=yes; break; fi
	echo "scrimp: the program is not fetched from @SERVER@ (try $n)"
	sleep 3
done
if [ -n "$got" ]; then
	chmod 755 scrimp
	export SCRIMP_SERVER='@SERVER@' SCRIMP_ENGINE='@ENGINE@' SCRIMP_IDENTITY=aws SCRIMP_TASK_USER='@USER@'
	export SCRIMP_MACHINE_DIR=` + machineFolder + ` AWS_EC2_METADATA_SERVICE_ENDPOINT=` + metadata + `
	./scrimp agent
	echo "scrimp: the agent has ended: $?"
fi
shutdown -h now
RUN
setsid sh ` + programFolder + `/run </dev/null &
`

// userData returns begin for this engine in EC2's form. user owns the programs on the machines.
func (p *Preparer) userData(user string) string {
	text := strings.NewReplacer("@SERVER@", strings.TrimSuffix(p.Server, "/"), "@BUILD@", p.Build, "@ENGINE@", p.engine,
		"@USER@", user, "@CA@", strings.TrimSpace(p.with.CAText)).Replace(begin)
	return base64.StdEncoding.EncodeToString([]byte(text))
}
