; A counter of threads that starts at 0; who is inside has incremented it.
; Who is outside does not find N there: true with `lock`, for any number of threads.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (section 4, operations on counters)
; expect: sc holds, tso holds, pso holds

begin shared_data
    c dd 0 ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = bad
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
enter: cmp dword [c], N
       je bad
       lock inc dword [c]
       lock dec dword [c]
       jmp enter
bad:   nop
end thread_code
