//go:build !local

// Package survey lists the machines and volumes of an account in a region, whoever made them.
package survey

import (
	"cmp"
	"context"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/resource"
)

// List returns the machines that are not terminated, and all volumes, by kind and id. Volumes that AWS bills by
// their operations too (io1, io2, standard) have no price.
func List(ctx context.Context, region string, connected func(context.Context) (*account.Client, error),
	indexed func(context.Context) (*sale.Index, error)) ([]resource.Resource, error) {
	x, err := indexed(ctx)
	if err != nil {
		return nil, err
	}
	a, err := connected(ctx)
	if err != nil {
		return nil, err
	}
	var list []resource.Resource
	machines := ec2.NewDescribeInstancesPaginator(a.EC2, &ec2.DescribeInstancesInput{})
	for machines.HasMorePages() {
		page, err := machines.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				if m, exists := machine(&r.Instances[i], x); exists {
					m.Region = region
					list = append(list, m)
				}
			}
		}
	}
	volumes := ec2.NewDescribeVolumesPaginator(a.EC2, &ec2.DescribeVolumesInput{})
	for volumes.HasMorePages() {
		page, err := volumes.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for i := range page.Volumes {
			v := volume(&page.Volumes[i], x)
			v.Region = region
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b resource.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// machine converts an instance; false if it is terminated.
func machine(e *types.Instance, x *sale.Index) (resource.Resource, bool) {
	m := resource.Resource{ID: sdk.ToString(e.InstanceId), Kind: resource.Machine, Type: string(e.InstanceType),
		Tags: tag.Plain(e.Tags), Currency: money.USD}
	if e.LaunchTime != nil {
		m.Made = e.LaunchTime.UTC()
	}
	if e.State == nil || e.State.Name == types.InstanceStateNameTerminated ||
		e.State.Name == types.InstanceStateNameShuttingDown {
		return m, false
	}
	m.Stopped = e.State.Name == types.InstanceStateNameStopped || e.State.Name == types.InstanceStateNameStopping
	if m.Stopped {
		return m, true
	}
	if e.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
		if e.Placement != nil {
			if p, known := x.Spot[stock.SpotKey{Zone: sdk.ToString(e.Placement.AvailabilityZone), Type: m.Type}]; known {
				m.Hourly = &p.Rate
			}
		}
	} else if p, known := x.Listed[m.Type]; known && e.Platform == "" { // the list is that of Linux
		m.Hourly = &p.Rate
	}
	return m, true
}

func volume(e *types.Volume, x *sale.Index) resource.Resource {
	v := resource.Resource{ID: sdk.ToString(e.VolumeId), Kind: resource.Volume, Type: string(e.VolumeType),
		Tags: tag.Plain(e.Tags), Size: size.Bytes(sdk.ToInt32(e.Size)) * size.GiB, Currency: money.USD}
	if e.CreateTime != nil {
		v.Made = e.CreateTime.UTC()
	}
	for _, at := range e.Attachments {
		v.On = sdk.ToString(at.InstanceId)
	}
	if e.VolumeType == types.VolumeTypeGp3 && x.DiskKnown {
		v.GigabyteMonth = &x.Disk
	} else if rate, known := x.Volumes[e.VolumeType]; known {
		v.GigabyteMonth = &rate
	}
	return v
}
