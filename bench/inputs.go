package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

const (
	largeBody   = 1 << 20 // bytes of ordinary JSON
	hostileBody = 4 << 20 // bytes; so large that even the smaller input does not fit into the pools
	largeCount  = 480     // headers; the guard allows 500
	manyMembers = 1 << 14 // the maximum number of members of an object that the guard sorts
)

var ordinaryBody = input{name: "ordinary JSON", unit: "bytes", large: largeBody, event: body(ordinary)}

func body(text func(size int) string) func(int) events.APIGatewayV2HTTPRequest {
	return func(size int) events.APIGatewayV2HTTPRequest { return request("", text(size)) }
}

// hostile are inputs that are as expensive as possible (S2).
var hostile = []input{
	{name: "arrays as deep as allowed", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return array(size, strings.Repeat("[", 62)+strings.Repeat("]", 62))
	})},
	{name: "arrays far too deep", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return strings.Repeat("[", size)
	})},
	{name: "nested objects, each out of order", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		const deep = 62
		around := strings.Repeat(`{"b":`, deep) + strings.Repeat(`,"a":0}`, deep)
		return strings.Replace(around, ":,", `:"`+strings.Repeat("x", size-len(around)-2)+`",`, 1)
	})},
	{name: "as many members as are sorted", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return members(min(size/16, manyMembers), size, "")
	})},
	{name: "more members than are sorted", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return members(size/12, size, "")
	})},
	{name: "long common prefixes", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return members(256, size, strings.Repeat("p", size/256-16))
	})},
	{name: "escapes only", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return `"` + strings.Repeat(`\u0041`, size/6) + `"`
	})},
	{name: "one long member name", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return `{"` + strings.Repeat("Ω", size/2) + `":1,"a":2}`
	})},
	{name: "white space", unit: "bytes", large: hostileBody, event: body(func(size int) string {
		return strings.Repeat(" \n\t\r", size/4) + "1"
	})},
	{name: "many headers", unit: "headers", large: largeCount, event: func(count int) events.APIGatewayV2HTTPRequest {
		e := request("", ordinary(bodySize))
		for i := range count {
			e.Headers[fmt.Sprint("x-header-", i)] = "value"
		}
		return e
	}},
	{name: "a long key (refused)", unit: "bytes", large: hostileBody, badKey: true, event: func(size int) events.APIGatewayV2HTTPRequest {
		return request(strings.Repeat("k", size), ordinary(bodySize))
	}},
}

// array returns a JSON array of about size bytes that repeats an element.
func array(size int, element string) string {
	return "[" + strings.Repeat(element+",", size/(len(element)+1)) + "0]"
}

// members returns an object of about size bytes, with n members in an unsorted order and a long
// text.
func members(n, size int, prefix string) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n {
		fmt.Fprintf(&b, `"%s%d":%d,`, prefix, (i*7919+1)%n, i%10)
	}
	b.WriteString(`"":"`)
	b.WriteString(strings.Repeat("x", max(0, size-b.Len()-2)))
	b.WriteString(`"}`)
	return b.String()
}
