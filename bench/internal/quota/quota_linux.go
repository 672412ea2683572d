// Package quota gives a process the processor time of a small Lambda function.
package quota

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Period is the time in microseconds within which a process gets its share of a core.
const Period = 20_000

// memoryOfACore is the memory, in MB, with which a function has a whole core (AWS Lambda Developer
// Guide, "Configure Lambda function memory").
const memoryOfACore = 1769

// Limit gives this process, with all of its threads, the share of a core that a function with the
// given memory has. It lasts until leave is called. The process gets its share once in every
// Period. Limit returns an error if it may not create a cgroup, of version 2 or 1.
func Limit(megabytes int) (leave func() error, err error) {
	parent, v2, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	group := filepath.Join(parent, fmt.Sprintf("lambdaidem-bench-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		return nil, err
	}
	quota := strconv.Itoa(Period * megabytes / memoryOfACore)
	if v2 {
		err = write(group, "cpu.max", quota+" "+strconv.Itoa(Period))
	} else {
		err = errors.Join(write(group, "cpu.cfs_period_us", strconv.Itoa(Period)), write(group, "cpu.cfs_quota_us", quota))
	}
	self := strconv.Itoa(os.Getpid())
	if err == nil {
		err = write(group, "cgroup.procs", self)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(group))
	}
	return func() error { return errors.Join(write(parent, "cgroup.procs", self), os.Remove(group)) }, nil
}

func write(group, file, text string) error {
	return os.WriteFile(filepath.Join(group, file), []byte(text), 0o644)
}

// ownCgroup returns the folder of the cgroup that controls this process's processor time, and
// whether it is of version 2.
func ownCgroup() (dir string, v2 bool, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false, err
	}
	for line := range strings.Lines(string(text)) {
		// number:controllers:path; version 2 has the number 0 and no controllers.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for _, controller := range strings.Split(fields[1], ",") {
			dir := filepath.Join("/sys/fs/cgroup", controller, fields[2])
			file := "cpu.cfs_quota_us"
			if controller == "" {
				file = "cgroup.procs"
			} else if controller != "cpu" {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return dir, controller == "", nil
			}
		}
	}
	return "", false, errors.New("this process has no cgroup with a controller of processor time")
}
