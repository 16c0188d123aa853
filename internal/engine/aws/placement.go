//go:build !local

package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
)

// placement returns the placement group of a request; empty if it has none. Types that do not support clusters have
// none. A reserved machine is in its reservation's group, if that has one.
func (d *Driver) placement(q *engine.Request, s *sale) string {
	if s.held != nil {
		return s.held.place
	}
	if q.Machines() < 2 || d.with.Placement == "none" || d.with.Placement == "cluster" && !s.kind.Cluster {
		return ""
	}
	sum := sha256.Sum256([]byte(q.Key))
	return "scrimp-" + d.name + "-" + hex.EncodeToString(sum[:10])
}

// placed creates the placement group of a request.
func (d *Driver) placed(ctx context.Context, a *account.Client, q *engine.Request, s *sale) error {
	name := d.placement(q, s)
	if name == "" || s.held != nil { // a reservation's group already exists
		return nil
	}
	tags := d.owner(q)
	maps.Copy(tags, q.Tags)
	tags[tagKey] = q.Key
	_, err := a.EC2.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{GroupName: &name,
		Strategy: types.PlacementStrategy(d.with.Placement),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypePlacementGroup,
			Tags: tagsOf(tags)}}})
	if account.CodeOf(err) == "InvalidPlacementGroup.Duplicate" {
		return nil
	}
	return err
}

// sweepGroups removes the placement groups of requests without machines.
func (d *Driver) sweepGroups(ctx context.Context, a *account.Client, live map[string]bool) error {
	out, err := a.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: d.ours()})
	if err != nil {
		return err
	}
	for _, g := range out.PlacementGroups {
		key := plain(g.Tags)[tagKey]
		d.mu.Lock()
		_, asked := d.requests[key] // its machines may still appear
		d.mu.Unlock()
		if live[key] || asked {
			continue
		}
		_, err := a.EC2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: g.GroupName})
		switch account.CodeOf(err) {
		case "", "InvalidPlacementGroup.InUse", "InvalidPlacementGroup.Unknown":
			if account.CodeOf(err) == "" && err != nil {
				return err
			}
			d.log.Debug("a placement group is removed", "engine", d.name, "group", sdk.ToString(g.GroupName))
		default:
			return err
		}
	}
	return nil
}
