package api

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Ports at which gangs meet: below those that systems give to outgoing connections (Linux from
// 32768 on) and to services of Kubernetes (from 30000 on).
const (
	firstMaster = 20000
	masters     = 10000
)

// MasterPort is the port at which the programs of an attempt meet. Programs listen there on all
// addresses of their machine, and machines may share a host, so taken says which ports the other
// gangs that run have, wherever their rank 0 is. It goes by the attempt's name: what still runs of
// an earlier attempt looks for its peers elsewhere. 0: all are taken.
func MasterPort(attempt string, taken func(port int) bool) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(attempt)) // a hash never fails
	first := int(h.Sum32() % masters)
	for i := range masters {
		if port := firstMaster + (first+i)%masters; !taken(port) {
			return port
		}
	}
	return 0
}

// Rank names what is of one rank of an attempt (its token, its log, its messages): the attempt
// for rank 0, ATTEMPT/RANK for the others.
func Rank(attempt string, node int) string {
	if node == 0 {
		return attempt
	}
	return attempt + "/" + strconv.Itoa(node)
}

// ParseRank reads what Rank wrote.
func ParseRank(name string) (attempt string, node int, ok bool) {
	attempt, text, several := strings.Cut(name, "/")
	if !several {
		return name, 0, name != ""
	}
	node, err := strconv.Atoi(text)
	return attempt, node, err == nil && node > 0 && Rank(attempt, node) == name && attempt != ""
}

// OutputsWritten stands among the outputs for all that the program writes in its work folder:
// spec.Written.
const OutputsWritten = "*"

// ParseOutputs reads what OutputsName wrote.
func ParseOutputs(job, name string) (node int, ok bool) {
	if name == job {
		return 0, true
	}
	node, err := strconv.Atoi(strings.TrimPrefix(name, job+"-"))
	return node, err == nil && node > 0 && OutputsName(job, node) == name
}

// OutputsName is the name under which the outputs of a machine of the job's gang are kept in
// the store at Assignment.OutputsURL: checkpoint.Store.Fetch finds them by it.
func OutputsName(job string, node int) string {
	if node == 0 {
		return job
	}
	return job + "-" + strconv.Itoa(node)
}
