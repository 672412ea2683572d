package lambdaidem

// memorySize estimates how many bytes of memory the response uses: the lengths of its
// strings, and a constant for each entry of a map or list.
func (r *Response) memorySize() int {
	const each, fixed = 64, 512
	size := fixed + len(r.Body) + len(r.reason)
	for _, several := range []map[string][]string{r.Header, r.trailer} {
		for name, values := range several {
			size += each + len(name)
			for _, v := range values {
				size += each + len(v)
			}
		}
	}
	for name, v := range r.fromHeaders {
		size += 2*each + len(name) + len(v)
	}
	for _, texts := range [][]string{r.Cookies, r.added, r.removed} {
		for _, v := range texts {
			size += each + len(v)
		}
	}
	return size
}
