//go:build !local

package ec2decode

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The fields that are read from each answer. Source: docs.aws.amazon.com, Amazon EC2 API reference, the data types of
// these names; element names are in lower case here.

func instanceTypes(body []byte) any {
	out := &ec2.DescribeInstanceTypesOutput{InstanceTypes: make([]types.InstanceTypeInfo, 0, 100)} // the size of a page
	if !page(body, "instancetypeset", &out.InstanceTypes, &out.NextToken, instanceType) {
		return nil
	}
	return out
}

func offerings(body []byte) any {
	out := &ec2.DescribeInstanceTypeOfferingsOutput{}
	if !page(body, "instancetypeofferingset", &out.InstanceTypeOfferings, &out.NextToken, offering) {
		return nil
	}
	return out
}

func spotPrices(body []byte) any {
	out := &ec2.DescribeSpotPriceHistoryOutput{}
	if !page(body, "spotpricehistoryset", &out.SpotPriceHistory, &out.NextToken, spotPrice) {
		return nil
	}
	return out
}

// page reads the items of a set and the token of the next page; false means that the answer has an unusual form.
func page[T any](body []byte, set string, to *[]T, token **string, one func(*xmlScanner, *T)) bool {
	s := &xmlScanner{text: body}
	return s.document(func(name []byte) {
		switch string(name) {
		case set:
			list(s, to, func(t *T) { one(s, t) })
		case "nexttoken":
			*token = s.str()
		default:
			s.skip()
		}
	})
}

// list appends each item to a list.
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

// texts appends each item to a list of texts.
func texts[T ~string](s *xmlScanner, to *[]T) {
	list(s, to, func(t *T) { *t = T(s.value()) })
}

// part returns a part of a value, and creates it if it is nil.
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
