package api

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// Ports for the rendezvous of gangs: below those that systems use for outgoing connections (Linux from 32768 on) and
// for services of Kubernetes (from 30000 on).
const (
	firstMaster = 20000
	masters     = 10000
)

// MasterPort returns the port for the rendezvous of an attempt's programs. Programs listen on all addresses, and
// machines may share a host, so taken reports the ports of other running gangs, wherever their rank 0 is. The port
// depends on the attempt's name, so leftover programs of an earlier attempt look for their peers elsewhere. 0: all
// are taken.
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

// Rank returns the name of one rank of an attempt (for its token, log and messages): the attempt for rank 0,
// ATTEMPT/RANK for others.
func Rank(attempt string, node int) string {
	if node == 0 {
		return attempt
	}
	return attempt + "/" + strconv.Itoa(node)
}

// ParseRank parses the output of Rank.
func ParseRank(name string) (attempt string, node int, ok bool) {
	attempt, text, several := strings.Cut(name, "/")
	if !several {
		return name, 0, name != ""
	}
	node, err := strconv.Atoi(text)
	return attempt, node, err == nil && node > 0 && Rank(attempt, node) == name && attempt != ""
}

// OutputsWritten among the outputs stands for everything that the program writes in its work folder: spec.Written.
const OutputsWritten = "*"

// ParseOutputs parses the output of OutputsName.
func ParseOutputs(job, name string) (node int, ok bool) {
	if name == job {
		return 0, true
	}
	node, err := strconv.Atoi(strings.TrimPrefix(name, job+"-"))
	return node, err == nil && node > 0 && OutputsName(job, node) == name
}

// OutputsName returns the name of the outputs of one machine of the job's gang in the store at
// Assignment.OutputsURL, for checkpoint.Store.Fetch.
func OutputsName(job string, node int) string {
	if node == 0 {
		return job
	}
	return job + "-" + strconv.Itoa(node)
}
