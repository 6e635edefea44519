; A counter of threads that starts at N, where every thread counts itself down, without `lock`: who has decremented it sees less, in its
; own buffer or in memory. For any number of threads.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (appendix A, `$t:x`)
; expect: sc holds, tso holds, pso holds

begin shared_data
    c dd N ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = down && $t:c = N
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
       dec dword [c]
down:  nop
rest:  jmp rest
end thread_code
