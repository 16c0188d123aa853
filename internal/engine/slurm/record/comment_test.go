package record

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/engine/order"
	"scrimp/internal/engine/slurm/scheduler"
)

// Slurm always refuses a job with a comment longer than 1024 bytes: tags without room are left out, and those that
// name the job's owner stay.
func TestComment_HasRoomInSlurm(t *testing.T) {
	for _, long := range []int{0, 10, 300, 5000} {
		r := Record{Order: order.Order{Key: "abc/j.1", Offer: "cluster/gpu/node/on-demand", Nodes: 2, Currency: "USD",
			Tags: map[string]string{
				"scrimp-installation": "0123456789abcdef", "scrimp-job": "j", "a": "short"}}}
		for i := range 5 {
			r.Tags[fmt.Sprint("team", i)] = strings.Repeat("ü", long)
		}
		text := r.Comment()
		if len(text) > longestComment {
			t.Errorf("tags of %d: %d bytes", long, len(text))
		}
		got, ok := Of(&scheduler.Job{ID: "7", Name: r.Name, Comment: text})
		if !ok || got.Key != r.Key || got.Offer != r.Offer || got.Nodes != 2 {
			t.Errorf("tags of %d: it is read as %+v, %v", long, got, ok)
		}
		for _, tag := range []string{"scrimp-installation", "scrimp-job", "a"} {
			if got.Tags[tag] != r.Tags[tag] {
				t.Errorf("tags of %d: %s is %q", long, tag, got.Tags[tag])
			}
		}
		if kept := len(got.Tags) == len(r.Tags); kept != (long <= 10) {
			t.Errorf("tags of %d: %d of %d are there", long, len(got.Tags), len(r.Tags))
		}
	}
}
