//go:build !local

package examine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/market"
)

// fewTypes is the least number of types in a request for scores: with fewer the score is low in any case. Source:
// docs.aws.amazon.com, Amazon EC2 user guide, "Spot placement score", 2026-11.
const fewTypes = 3

// Scores reports how likely EC2 is to grant a spot machine now, by zone, from 1 to 10: for each fleet, or for all
// types together if there is none. A missing score does not fail the check.
func (e *Examiner) Scores(ctx context.Context, sales []sale.Sale) engine.Finding {
	f := engine.Finding{Name: "spot placement", OK: true}
	sets := e.With.Fleets
	if len(sets) == 0 {
		sets = []setting.Fleet{{Name: "all types"}}
	}
	names := map[string]string{} // of zones, by id
	for _, z := range e.Index.Zones {
		names[z.ID] = z.Name
	}
	var lines []string
	for n := range sets {
		kinds := map[string]bool{}
		for _, s := range sales {
			if len(s.Among) == 0 && s.Offer.Capacity == market.Spot && sets[n].Wants(s.Kind.Name) {
				kinds[s.Kind.Name] = true
			}
		}
		if len(kinds) < fewTypes {
			lines = append(lines, fmt.Sprintf("%s: not asked, EC2 scores %d types and more", sets[n].Name, fewTypes))
			continue
		}
		list, err := e.scored(ctx, slices.Sorted(maps.Keys(kinds)), names)
		if err != nil {
			f.Text = "not told: " + e.explain(err).Error()
			return f
		}
		lines = append(lines, sets[n].Name+": "+list)
	}
	f.Text = "how likely a spot machine is granted now, of 10: " + strings.Join(lines, "; ")
	return f
}

// scored returns the scores of a set of types in the zones of the subnets, the best first.
func (e *Examiner) scored(ctx context.Context, kinds []string, names map[string]string) (string,
	error) {
	out, err := e.Client.EC2.GetSpotPlacementScores(ctx, &ec2.GetSpotPlacementScoresInput{InstanceTypes: kinds,
		TargetCapacity: sdk.Int32(1), TargetCapacityUnitType: types.TargetCapacityUnitTypeUnits,
		SingleAvailabilityZone: sdk.Bool(true), RegionNames: []string{e.With.Region}})
	if err != nil {
		return "", err
	}
	all := slices.DeleteFunc(out.SpotPlacementScores, func(s types.SpotPlacementScore) bool {
		return names[sdk.ToString(s.AvailabilityZoneId)] == "" || s.Score == nil
	})
	if len(all) == 0 {
		return "EC2 returned no score for a zone of the subnets", nil
	}
	name := func(s types.SpotPlacementScore) string { return names[sdk.ToString(s.AvailabilityZoneId)] }
	slices.SortFunc(all, func(a, b types.SpotPlacementScore) int {
		return cmp.Or(cmp.Compare(*b.Score, *a.Score), cmp.Compare(name(a), name(b)))
	})
	var list []string
	for _, s := range all {
		list = append(list, fmt.Sprintf("%s %d", name(s), *s.Score))
	}
	return strings.Join(list, ", "), nil
}
