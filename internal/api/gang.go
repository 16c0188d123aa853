package api

import "hash/fnv"

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
