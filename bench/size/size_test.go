package main

import "testing"

// limit is the maximum percentage by which the guard may enlarge a binary. docs/performance.md has
// the measured percentage, and says what makes it up.
const limit = 13

func TestSize_WhatTheGuardAddsToABinary(t *testing.T) {
	folder := t.TempDir()
	s, err := measure(t.Context(), folder, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("bare %d bytes, guarded %d bytes: the guard adds %.2f %%", s.bare, s.guarded, s.percent())
	if s.percent() <= limit {
		return
	}
	t.Errorf("the guard adds %.2f %% to a handler's binary; the limit is %v %%. Use go build -ldflags=-dumpdep to find out what refers to a package that should not be there", s.percent(), limit)
	added, err := addedByPackage(t.Context(), folder, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range added {
		t.Logf("%9d %s", p.bytes, p.name)
	}
}

// The result has the packages of the guard, and not those that are equal in both programs.
func TestSize_AddedByPackage(t *testing.T) {
	added, err := addedByPackage(t.Context(), t.TempDir(), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	last := added[0].bytes
	for _, p := range added {
		if p.bytes <= 0 || p.bytes > last {
			t.Errorf("%s adds %d bytes, after a package with %d", p.name, p.bytes, last)
		}
		last, found[p.name] = p.bytes, true
	}
	const module = "github.com/lambdaidem/toolkit/"
	if !found[module+"lambdaidem"] || !found[module+"dynamostore"] || found[module+"bench/size/internal/order"] {
		t.Errorf("the guard adds %v", added)
	}
}

func TestSize_PackageOfASymbol(t *testing.T) {
	for symbol, want := range map[string]string{
		"net/http.(*Client).Do": "net/http",
		"runtime.mallocgc":      "runtime",
		"github.com/hashicorp/golang-lru/v2/simplelru.(*LRU[string,*a/b.c]).Add": "github.com/hashicorp/golang-lru/v2/simplelru",
		"slices.SortFunc[go.shape.[]a/b.c]":                                      "slices",
		"gopkg.in/yaml%2ev3.Marshal":                                             "gopkg.in/yaml.v3",
		"type:*a/b.c":                                                            "the linker's",
	} {
		if got := packageOf(symbol); got != want {
			t.Errorf("%s is of %s; want %s", symbol, got, want)
		}
	}
}
