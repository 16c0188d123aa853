package child

import (
	"slices"
	"strings"
)

// machines lists the variables that describe the machine, its user and its network, whoever started the server. A name
// that ends in _ stands for all names that begin with it.
var machines = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_", "TZ", "TMPDIR", "TERM", "PATH", "LD_LIBRARY_PATH",
	"XDG_",
	"CUDA_", "NVIDIA_", "ROCM_", "ROCR_VISIBLE_DEVICES", "HIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
}

// OfMachine reports whether a variable is one of them. Names of proxies may be in lower case too.
func OfMachine(name string) bool {
	return slices.ContainsFunc(machines, func(m string) bool {
		return name == m || strings.HasSuffix(m, "_") && strings.HasPrefix(name, m) ||
			strings.HasSuffix(m, "_PROXY") && strings.EqualFold(name, m)
	})
}

// stores lists the prefixes of variables with which the agent on a machine that shares the server's files reaches the
// stores in job files. Programs never get them from it.
var stores = []string{"AWS_", "GOOGLE_", "AZURE_"}

// OfStores reports whether an agent needs a variable to reach stores. No program gets such a variable from its machine.
func OfStores(name string) bool {
	return !OfMachine(name) && slices.ContainsFunc(stores, func(s string) bool { return strings.HasPrefix(name, s) })
}

// OfAgent reports whether an agent that is started beside its server gets a variable. It gets nothing else from the
// shell that started the server, such as the password of the database.
func OfAgent(name string) bool {
	return name == "SCRIMP_FREE_DISK" || name == "SCRIMP_CACHE" ||
		!strings.HasPrefix(name, "SCRIMP_") && (OfMachine(name) || OfStores(name))
}
