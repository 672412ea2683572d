//go:build !linux

package main

import "errors"

func asInLambda(int) (leave func() error, err error) {
	return nil, errors.New("processor time can be limited on Linux alone")
}
