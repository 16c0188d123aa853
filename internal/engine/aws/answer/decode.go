//go:build !local

package answer

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// What is read of each answer. Source: docs.aws.amazon.com, Amazon EC2 API reference, the data types of these names;
// names of elements are written in small letters here.

func instanceTypes(body []byte) any {
	s := &xmlScanner{text: body}
	out := &ec2.DescribeInstanceTypesOutput{InstanceTypes: make([]types.InstanceTypeInfo, 0, 100)} // a page has that many
	whole := s.document(func(name []byte) {
		switch string(name) {
		case "instancetypeset":
			list(s, &out.InstanceTypes, func(t *types.InstanceTypeInfo) { instanceType(s, t) })
		case "nexttoken":
			out.NextToken = s.str()
		default:
			s.skip()
		}
	})
	if !whole {
		return nil
	}
	return out
}

func offerings(body []byte) any {
	s := &xmlScanner{text: body}
	out := &ec2.DescribeInstanceTypeOfferingsOutput{}
	whole := s.document(func(name []byte) {
		switch string(name) {
		case "instancetypeofferingset":
			list(s, &out.InstanceTypeOfferings, func(o *types.InstanceTypeOffering) { offering(s, o) })
		case "nexttoken":
			out.NextToken = s.str()
		default:
			s.skip()
		}
	})
	if !whole {
		return nil
	}
	return out
}

func spotPrices(body []byte) any {
	s := &xmlScanner{text: body}
	out := &ec2.DescribeSpotPriceHistoryOutput{}
	whole := s.document(func(name []byte) {
		switch string(name) {
		case "spotpricehistoryset":
			list(s, &out.SpotPriceHistory, func(p *types.SpotPrice) { spotPrice(s, p) })
		case "nexttoken":
			out.NextToken = s.str()
		default:
			s.skip()
		}
	})
	if !whole {
		return nil
	}
	return out
}

// list adds each item to a list.
func list[T any](s *xmlScanner, to *[]T, one func(*T)) {
	if *to == nil {
		*to = []T{}
	}
	s.field("item", func() {
		var zero T
		*to = append(*to, zero)
		one(&(*to)[len(*to)-1])
	})
}

// texts adds each item to a list of texts.
func texts[T ~string](s *xmlScanner, to *[]T) {
	list(s, to, func(t *T) { *t = T(s.value()) })
}

// part is a part of a value, which is made where it is not there yet.
func part[T any](at **T) *T {
	if *at == nil {
		*at = new(T)
	}
	return *at
}

func instanceType(s *xmlScanner, t *types.InstanceTypeInfo) {
	s.children(func(name []byte) {
		switch string(name) {
		case "instancetype":
			t.InstanceType = types.InstanceType(s.value())
		case "baremetal":
			t.BareMetal = s.truth()
		case "supportedusageclasses":
			texts(s, &t.SupportedUsageClasses)
		case "vcpuinfo":
			of := part(&t.VCpuInfo)
			s.field("defaultvcpus", func() { of.DefaultVCpus = s.number32() })
		case "memoryinfo":
			of := part(&t.MemoryInfo)
			s.field("sizeinmib", func() { of.SizeInMiB = s.number() })
		case "processorinfo":
			of := part(&t.ProcessorInfo)
			s.field("supportedarchitectures", func() { texts(s, &of.SupportedArchitectures) })
		case "placementgroupinfo":
			of := part(&t.PlacementGroupInfo)
			s.field("supportedstrategies", func() { texts(s, &of.SupportedStrategies) })
		case "gpuinfo":
			of := part(&t.GpuInfo)
			s.field("gpus", func() { list(s, &of.Gpus, func(g *types.GpuDeviceInfo) { gpu(s, g) }) })
		default:
			s.skip()
		}
	})
}

func gpu(s *xmlScanner, g *types.GpuDeviceInfo) {
	s.children(func(name []byte) {
		switch string(name) {
		case "count":
			g.Count = s.number32()
		case "manufacturer":
			g.Manufacturer = s.str()
		case "memoryinfo":
			of := part(&g.MemoryInfo)
			s.field("sizeinmib", func() { of.SizeInMiB = s.number32() })
		case "name":
			g.Name = s.str()
		default:
			s.skip()
		}
	})
}

func offering(s *xmlScanner, o *types.InstanceTypeOffering) {
	s.children(func(name []byte) {
		switch string(name) {
		case "instancetype":
			o.InstanceType = types.InstanceType(s.value())
		case "location":
			o.Location = s.str()
		default:
			s.skip()
		}
	})
}

func spotPrice(s *xmlScanner, p *types.SpotPrice) {
	s.children(func(name []byte) {
		switch string(name) {
		case "availabilityzone":
			p.AvailabilityZone = s.str()
		case "instancetype":
			p.InstanceType = types.InstanceType(s.value())
		case "spotprice":
			p.SpotPrice = s.str()
		case "timestamp":
			p.Timestamp = s.moment()
		default:
			s.skip()
		}
	})
}
