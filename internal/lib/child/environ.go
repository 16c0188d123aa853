package child

import (
	"slices"
	"strings"
)

// machines are the variables that say what the machine and its user have, whoever started the server,
// and where the network is. A name that ends in _ stands for all that begin with it.
var machines = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_", "TZ", "TMPDIR", "TERM", "PATH", "LD_LIBRARY_PATH",
	"XDG_",
	"CUDA_", "NVIDIA_", "ROCM_", "ROCR_VISIBLE_DEVICES", "HIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
}

// OfMachine reports whether a variable is one of them. Proxies are written in small letters too.
func OfMachine(name string) bool {
	return slices.ContainsFunc(machines, func(m string) bool {
		return name == m || strings.HasSuffix(m, "_") && strings.HasPrefix(name, m) ||
			strings.HasSuffix(m, "_PROXY") && strings.EqualFold(name, m)
	})
}

// stores are the variables by which the agent of a machine that shares the server's files reaches stores that
// job files name. No program has them of it.
var stores = []string{"AWS_", "GOOGLE_", "AZURE_"}

// OfStores reports whether a variable is one by which an agent reaches stores: no program gets it of any machine.
func OfStores(name string) bool {
	return !OfMachine(name) && slices.ContainsFunc(stores, func(s string) bool { return strings.HasPrefix(name, s) })
}

// OfAgent reports whether an agent that is started beside its server has the variable of it: what else the shell
// has that started the server, such as the password of its database, is nobody's there.
func OfAgent(name string) bool {
	return !strings.HasPrefix(name, "SCRIMP_") && (OfMachine(name) || OfStores(name))
}
