//go:build !local

// Package leftover removes what machines of an engine leave behind.
package leftover

import (
	"context"
	"log/slog"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/tag"
)

// leftFor is the least age of a leftover: younger ones may still be in use for a launch.
const leftFor = 10 * time.Minute

// Sweeper removes the leftovers of an engine's machines: disks, network interfaces, launch templates and placement
// groups.
type Sweeper struct {
	Engine string           // its name
	Now    func() time.Time // wall time
	Log    *slog.Logger
	Uses   func(key string) bool      // whether a request has machines, or may get some
	Starts func(template string) bool // whether this server starts machines from a template
}

// Sweep removes all leftovers. It logs those that it could not remove.
func (s *Sweeper) Sweep(ctx context.Context, a *account.Client) {
	for what, do := range map[string]func(context.Context, *account.Client) error{
		"volumes": s.volumes, "network interfaces": s.interfaces, "launch templates": s.templates,
		"placement groups": s.groups,
	} {
		if err := do(ctx, a); err != nil {
			s.Log.Warn("a leftover was not removed", "engine", s.Engine, "what", what, "error", account.SaidBy(err))
		}
	}
}

func (s *Sweeper) volumes(ctx context.Context, a *account.Client) error {
	out, err := a.EC2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: tag.Filter(s.Engine, types.Filter{
		Name: sdk.String("status"), Values: []string{string(types.VolumeStateAvailable)}})})
	if err != nil {
		return err
	}
	for _, v := range out.Volumes {
		if v.CreateTime == nil || s.Now().Sub(*v.CreateTime) < leftFor {
			continue
		}
		_, err := a.EC2.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: v.VolumeId})
		if err != nil && account.CodeOf(err) != "InvalidVolume.NotFound" {
			return err
		}
		s.Log.Info("removing an orphaned disk", "engine", s.Engine, "volume", sdk.ToString(v.VolumeId))
	}
	return nil
}

func (s *Sweeper) interfaces(ctx context.Context, a *account.Client) error {
	out, err := a.EC2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{
		Filters: tag.Filter(s.Engine, types.Filter{Name: sdk.String("status"),
			Values: []string{string(types.NetworkInterfaceStatusAvailable)}})})
	if err != nil {
		return err
	}
	for _, n := range out.NetworkInterfaces {
		in := &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: n.NetworkInterfaceId}
		_, err := a.EC2.DeleteNetworkInterface(ctx, in)
		if err != nil && account.CodeOf(err) != "InvalidNetworkInterfaceID.NotFound" &&
			account.CodeOf(err) != "InvalidNetworkInterface.InUse" {
			return err
		}
	}
	return nil
}

// templates removes templates that have started no machine for a day: a request that needs one creates it again.
func (s *Sweeper) templates(ctx context.Context, a *account.Client) error {
	out, err := a.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: tag.Filter(s.Engine)})
	if err != nil {
		return err
	}
	for _, t := range out.LaunchTemplates {
		name := sdk.ToString(t.LaunchTemplateName)
		if s.Starts(name) || t.CreateTime == nil || s.Now().Sub(*t.CreateTime) < 24*time.Hour {
			continue
		}
		_, err := a.EC2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
		if err != nil && !strings.HasPrefix(account.CodeOf(err), "InvalidLaunchTemplate") {
			return err
		}
	}
	return nil
}

// groups removes the placement groups of requests without machines.
func (s *Sweeper) groups(ctx context.Context, a *account.Client) error {
	out, err := a.EC2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{Filters: tag.Filter(s.Engine)})
	if err != nil {
		return err
	}
	for _, g := range out.PlacementGroups {
		key := tag.Plain(g.Tags)[tag.Key]
		if s.Uses(key) {
			continue
		}
		_, err := a.EC2.DeletePlacementGroup(ctx, &ec2.DeletePlacementGroupInput{GroupName: g.GroupName})
		switch account.CodeOf(err) {
		case "", "InvalidPlacementGroup.InUse", "InvalidPlacementGroup.Unknown":
			if account.CodeOf(err) == "" && err != nil {
				return err
			}
			s.Log.Debug("removing a placement group", "engine", s.Engine, "group", sdk.ToString(g.GroupName))
		default:
			return err
		}
	}
	return nil
}
