package commit

import (
	"testing"
	"time"

	api "scrimp/client"
)

// The machines of a receipt count with their own periods, those in use until now. Other capacity does not count.
func TestStaysOf_CountsEachMachine(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hour := func(h int) time.Time { return now.Add(time.Duration(h-12) * time.Hour) }
	r := api.Receipt{Tries: []api.Try{
		{Offer: "aws/us-east-1a/g5.xlarge/on-demand", Capacity: "on-demand", Instance: "i-1", From: hour(1), Until: hour(3)},
		{Offer: "aws/us-east-1a/g5.xlarge/spot", Capacity: "spot", Instance: "i-2", From: hour(3), Until: hour(4)},
		{Offer: "aws/us-east-1a/g5.xlarge/on-demand", Capacity: "on-demand", From: hour(5), Nodes: []api.Node{
			{Instance: "i-3", From: hour(5), Until: hour(6)}, {Instance: "i-4", From: hour(5)}}},
	}}
	got := staysOf(r, "on-demand", now)
	if len(got) != 3 || got[0].Region != "aws/us-east-1a/g5.xlarge" || got[1].Machine != "i-3" || !got[2].Until.Equal(now) {
		t.Errorf("%+v", got)
	}
	if all := staysOf(r, "all", now); len(all) != 4 {
		t.Errorf("%+v", all)
	}
}
