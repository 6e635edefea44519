; A counter of threads that starts at N, where every thread counts itself down, without `lock`: updates are lost, but who has
; decremented it never sees N again, in memory or in its own buffer. For any number of threads.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (section 4, operations on counters)
; expect: sc holds, tso holds, pso holds

begin shared_data
    c dd N ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
       dec dword [c]
       cmp dword [c], N
       je bad
rest:  jmp rest
bad:   nop
end thread_code
