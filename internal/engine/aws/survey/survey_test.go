//go:build !local

package survey

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/stock"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/lane"
)

// A volume has the price of its own type. One without a price in the list has none, not that of another type and not 0.
func TestVolume_HasThePriceOfItsType(t *testing.T) {
	lane.Component(t, "whole")
	x := &sale.Index{Stock: stock.Stock{Disk: 80, DiskKnown: true, Volumes: map[types.VolumeType]money.Rate{
		types.VolumeTypeGp2: 100, types.VolumeTypeSt1: 45}}}
	for kind, want := range map[types.VolumeType]money.Rate{types.VolumeTypeGp3: 80, types.VolumeTypeGp2: 100, types.VolumeTypeSt1: 45,
		types.VolumeTypeSc1: 0, types.VolumeTypeIo2: 0} {
		switch r := volume(&types.Volume{VolumeType: kind}, x); {
		case want == 0 && r.GigabyteMonth != nil, want > 0 && (r.GigabyteMonth == nil || *r.GigabyteMonth != want):
			t.Errorf("%s: %v, want %v", kind, r.GigabyteMonth, want)
		}
	}
}
