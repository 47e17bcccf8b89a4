package acp_test

func replay([]string) int { return 0 }
